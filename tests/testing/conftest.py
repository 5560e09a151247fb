"""The networks beside these tests are plain modules, as another repository would have them."""

import sys
from pathlib import Path

pytest_plugins = ["pytester"]

sys.path.insert(0, str(Path(__file__).parent))
