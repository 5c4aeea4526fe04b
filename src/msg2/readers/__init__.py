"""Files -> tasks, and files -> graphs. The format is recognised by content; every complaint names the file and row."""

from msg2.readers.graphs import read_graph
from msg2.readers.registry import read, read_all
from msg2.readers.survey import Survey, TaskSurvey, survey

__all__ = ["Survey", "TaskSurvey", "read", "read_all", "read_graph", "survey"]
