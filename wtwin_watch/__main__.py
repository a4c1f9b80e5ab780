"""``python -m wtwin_watch``."""

import sys

from wtwin_watch.cli import main

sys.exit(main())
