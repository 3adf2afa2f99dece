"""A camera whose frames a Go program looks at: red balls that roll over a noisy floor.

The frames are as OpenCV's are: blue, green, red. With a real camera, shoot() is video.read(frame), of
video = cv2.VideoCapture(0).
"""
import ndbridge
import numpy as np

HEIGHT, WIDTH, RADIUS = 480, 640, 20
GREEN = (0, 255, 0)

frame = np.zeros((HEIGHT, WIDTH, 3), np.uint8)  # each frame is shot into this array, so the host looks it up once
rng = np.random.default_rng(1)
y, x = np.mgrid[:HEIGHT, :WIDTH]


def shoot(i):
    """Shoots a frame, and gives where the balls are."""
    frame[:] = rng.integers(0, 90, frame.shape, dtype=np.uint8)
    balls = [(100 + 7 * i, 120), (540 - 7 * i, 360)]
    for left, top in balls:
        frame[(x - left) ** 2 + (y - top) ** 2 <= RADIUS**2] = (40, 40, 230)
    return balls


def run(count):
    """Has the host find the balls in each frame, and draw into it; gives what was found where it should be, and what was not."""
    right = wrong = 0
    for i in range(count):
        balls = shoot(i)
        boxes = ndbridge.host.detect()  # Go draws a box around each ball, in this very array
        for left, top, end, bottom in boxes:
            centre = ((left + end - 1) / 2, (top + bottom - 1) / 2)
            drawn = (frame[top, left:end] == GREEN).all() and (frame[top:bottom, end - 1] == GREEN).all()
            if drawn and centre in balls:
                right += 1
            else:
                wrong += 1
    return {"right": right, "wrong": wrong}
