"""Why a kernel became what it is: facts about each kernel, gathered while it is compiled.

An `Explainer` is shown the module before passes that use up what it wants to know, and asks one
file for each subject: `tiles` and `shared` (where tiles live), `accesses` (how memory is
accessed), `masks` (what they could not be spared for), `variation` (which branches split the
threads), `contraction` (how products are made), `machine` (registers, and what ptxas made).
What it finds are records (`records`), which `text` puts in words and `phobos.explain.data` in
JSON.
"""

from phobos.explain.gather import Explainer
from phobos.explain.records import Explanation

__all__ = ["Explainer", "Explanation"]
