"""The program of the model: its arrays are the globals of this module, and model.py runs the steps."""

import model

model.main(globals())
