"""Looks at a photo. An ordinary script: that a Go program looks at its arrays, it does not know."""

import time

import numpy as np
import pywt.data

photo = pywt.data.camera()
transposed = photo.T
mirrored = photo[:, ::-1]
face = photo[30:230, 120:320]
spectrum = np.log1p(np.abs(np.fft.fftshift(np.fft.fft2(photo, (2048, 2048)))))
original = photo.copy()
heartbeat = pywt.data.ecg()


def blend(picture, share=0.5):
    return (picture * share + original * (1 - share)).astype(np.uint8)


changed = np.zeros(photo.shape, bool)
count = 0
while True:
    np.not_equal(photo, original, out=changed)
    if np.count_nonzero(changed) != count:
        count = np.count_nonzero(changed)
        rows, columns = changed.nonzero()
        print(f"{count} pixels of my photo have changed: rows {rows.min()} to {rows.max()}, "
              f"columns {columns.min()} to {columns.max()}")
    time.sleep(0.01)
