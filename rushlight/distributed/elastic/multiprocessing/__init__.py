"""Reporting why a process of a job failed."""
