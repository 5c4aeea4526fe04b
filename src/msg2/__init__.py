"""msg2 learns how a task works from many imperfect demonstrations of it."""
