"""The Process Discovery Contest: which of two traces fits a process better?"""
