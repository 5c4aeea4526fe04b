"""The local web app: datasets in, graphs out, drawn and corrected by hand; and the same as JSON for programs.

Everything is kept as plain files in one folder. Whatever a visitor sends is worked on in a process of its own.
"""
