"""The report as one page for a browser: what lies on it, how it is drawn, what changed since an earlier run."""
