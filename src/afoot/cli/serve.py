"""temporary"""
import argparse
import json

import msgspec

from afoot import app, config


def quick(argv):
    p = argparse.ArgumentParser(); s=p.add_subparsers(dest="c"); q=s.add_parser("serve")
    q.add_argument("targets", nargs="*"); q.add_argument("--http"); q.add_argument("--stdio", action="store_true"); q.add_argument("--store"); q.add_argument("--json", action="store_true"); q.add_argument("--reload", action="store_true")
    a=p.parse_args(argv)
    flags={k:v for k,v in dict(http=a.http, store=a.store).items() if v}
    st=config.load(flags=flags).settings
    def started(addr):
        print(json.dumps(msgspec.to_builtins(addr)), flush=True)
    app.run(app.Plan(st, tuple(a.targets), a.stdio, a.reload), started)
