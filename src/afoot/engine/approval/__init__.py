"""The approval of calls: who is asked, the question and its answer, the allowlist, and earlier approvals."""
