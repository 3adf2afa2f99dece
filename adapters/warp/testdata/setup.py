import numpy as np
import warp as wp

wp.config.quiet = True
wp.init()


@wp.struct
class Particle:
    mass: wp.float32
    at: wp.vec3
    kind: wp.int8


def on_cpu(values, dtype, **more):
    return wp.array(values, dtype=dtype, device="cpu", **more)
