"""Names that a careless page would take for markup, or that hide what they say, and an exception that does so."""

import json
import time

import ndbridge
import numpy as np

keys = [
    "<img src=x onerror=\"document.body.dataset.hacked='image'\">", "<script>document.body.dataset.hacked='script'</script>", "\"'><svg onload=document.body.dataset.hacked='svg'>",
    "javascript:document.body.dataset.hacked='url'", "${document.body.dataset.hacked='template'}", "\u202etxt.exe", "a\nb\tc", "../../etc/passwd", "%2e%2e%2f", "x" * 300, "__proto__",
    "constructor", "#hash?query&a=b", "</title><b>",
]
for i, key in enumerate(keys):
    ndbridge.publish(f"batch[{json.dumps(key, ensure_ascii=False)}]", np.full((200, 200), i, np.float64))
__proto__ = constructor = np.ones((200, 200))
time.sleep(3600)
