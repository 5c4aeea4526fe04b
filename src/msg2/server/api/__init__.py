"""The routes of the app, one module per kind of resource.

`stateless` answers questions about graphs and labels and keeps nothing; `datasets` and `graphs` are what is kept, with
the jobs that learn; `labels` is the workbench; `runs` are followed live; `pages` are the screens for people. Every
route only translates: what is done is in `msg2.server.workspace`, `msg2.server.jobs`, `msg2.server.live_runs` and, in
processes of their own, in the worker tasks.
"""
