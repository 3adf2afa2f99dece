package contract

import "encoding/hex"

// UUID identifies a GPU, as the CUDA driver's cuDeviceGetUuid does. Indices do not: CUDA_VISIBLE_DEVICES renumbers the
// GPUs of a process.
type UUID [16]byte

// String returns the usual spelling: "GPU-fcfb18e7-bd29-54fb-ede1-d61720b5500a".
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return "GPU-" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
