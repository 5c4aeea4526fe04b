"""The local web app: datasets in, graphs out, drawn and corrected by hand; and the same as JSON for programs.

Everything is kept as plain files in one folder. Whatever a visitor sends is worked on in a process of its own.
`web_app` puts it together; `api` has the routes, `schemas` the JSON, `security` who may ask; `workspace` and `storage`
keep datasets and graphs, `workbench` and `label_store` the labels that people make, `jobs` learns in the background,
`sandbox` runs the worker tasks in `dataset_workers`, `graph_workers` and `label_workers`.
"""
