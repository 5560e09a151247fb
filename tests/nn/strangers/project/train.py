"""A script with its network, arguments and a package that is not installed."""

import argparse

import a_package_that_nobody_has as logger
from helpers import Gate
from torch import nn


class Net(nn.Module):
    def __init__(self, ninp, nhid, **kwargs):
        super().__init__()
        print("building")
        self.nhid, self.gate = nhid, Gate(ninp, nhid)

    def forward(self, x, h=None):
        h = x.new_zeros(len(x), self.nhid) if h is None else h
        return self.gate(x, h)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nhid", type=int, default=64)
    logger.init(parser.parse_args())
