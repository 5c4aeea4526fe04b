"""Files -> tasks and graphs, and tasks and graphs -> files.

One module per format, with its reader and its writer; `registry` lists them. A format is recognised by its content when
it is read and by the suffix of the file when it is written; every error names the file and the row.
"""

from msg2.formats.conversion import read_sequences, to_task, to_tasks
from msg2.formats.data_summary import DataSummary, TablePreview, TaskSummary, preview_table, summarize
from msg2.formats.graph_reader import read_graph
from msg2.formats.registry import read, read_all, write
from msg2.formats.run_selection import compare_runs

__all__ = [
    "DataSummary", "TablePreview", "TaskSummary", "compare_runs", "preview_table", "read", "read_all", "read_graph",
    "read_sequences", "summarize",
    "to_task", "to_tasks", "write",
]  # fmt: skip
