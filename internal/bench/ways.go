package bench

// The ways that ways.py measures.
const (
	OwnExport        = "__dlpack__"
	StridedView      = "StridedMemoryView"
	TorchQueue       = "torch.multiprocessing Queue"
	TorchSimpleQueue = "torch.multiprocessing SimpleQueue"
	SharedMemory     = "shared_memory"
	SharedMemoryCopy = "shared_memory, copied in"
	Pickle           = "pickle over a pipe"
	PipeCall         = "multiprocessing pipe, call"
	TorchCall        = "torch.multiprocessing pipe, call"
)

// Ours is a view by a host, with the defaults of the hand-off.
const Ours = "ndbridge"
