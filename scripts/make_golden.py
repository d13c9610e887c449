#!/usr/bin/env python3
"""Makes tests/golden: small values computed by TensorFlow, against which the tests compare.

  make_golden.py [--only NAME ...] [--out FOLDER]

NAME is one of the makers below (all of them by default); FOLDER is tests/golden of this
checkout by default. Needs Python 3.11 with tensorflow-cpu 2.21 and safetensors 0.8; the tests need
neither. oneDNN is off, so that the values are those of TensorFlow's own kernels; everything drawn is
drawn from a fixed seed or a formula, so a second run writes the same values. tests/golden/README.md
says what each file holds, tests/golden/makers how each is made.
"""
import argparse
import pathlib
import sys

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
sys.path.insert(0, str(GOLDEN))
from makers.checkpoints import make_checkpoints
from makers.layers import make_layers
from makers.nets import make_curve, make_small_net
from makers.trainer import make_events, make_histograms, make_input_ops, make_schedule

MAKERS = {"checkpoints": make_checkpoints, "layers": make_layers, "small_net": make_small_net,
          "curve": make_curve, "schedule": make_schedule, "histograms": make_histograms,
          "events": make_events, "input_ops": make_input_ops}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MAKERS, default=list(MAKERS))
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.only:
        MAKERS[name](args.out)


if __name__ == "__main__":
    main()
