"""Language models behind any OpenAI-compatible endpoint: what comes before what, and drafts of labels.

Nothing is sent unless an endpoint is named. What a model says is marked `llm`, checked, and never taken for certain.
"""

from msg2.llm.chat_client import ChatClient, ChatUsage
from msg2.llm.questions import ask_order, draft_labels, propose_steps

__all__ = ["ChatClient", "ChatUsage", "ask_order", "draft_labels", "propose_steps"]
