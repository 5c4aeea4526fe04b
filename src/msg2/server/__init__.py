"""The local web app: datasets in, graphs out, drawn and corrected by hand; and the same as JSON for programs.

Everything is kept as plain files in one folder. Whatever a visitor sends is worked on in the sandbox.
`web_app` puts it together, with the screens; `schemas` has the JSON, `security` who may ask, `settings` the limits.
The other routes are in `routes` (datasets, graphs), `workbench` (labels) and `live_runs`. `workspace` keeps datasets
and graphs, `jobs` learns in the background. `sandbox` calls functions in processes of their own: those of
`dataset_functions` and `graph_functions`.
"""
