"""Names of types that scripted programs import from here; they are typing's."""

from __future__ import annotations

from typing import Any as Any
from typing import Dict as Dict
from typing import List as List
from typing import Optional as Optional
from typing import Tuple as Tuple
from typing import Union as Union
