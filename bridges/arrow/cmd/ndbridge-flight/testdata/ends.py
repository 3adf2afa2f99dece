raise RuntimeError("enough")
