"""The local web app: datasets in, graphs out, drawn and corrected by hand; and the same as JSON for programs.

`web_app` puts it together; `schemas` has the JSON, `security` who may ask, `settings` the limits. The routes are in
`routes` (datasets, graphs), `workbench` (labels) and `live_runs`. `workspace` keeps plain files in one folder, `jobs`
learns in the background, and `sandbox` calls `dataset_functions` and `graph_functions` in processes of their own.
"""
