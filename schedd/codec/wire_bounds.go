package codec

import (
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// WireBounds is how the wire says what the processes of an attempt may use; nil for no
// bounds.
func WireBounds(b queue.ProcessLimits) *wire.Bounds {
	if b == (queue.ProcessLimits{}) {
		return nil
	}
	return &wire.Bounds{
		CpuNs: int64(b.CPU), ProcessCpuS: int64(b.ProcessCPU / time.Second), Virtual: int64(b.Virtual),
		ProcessVirtual: int64(b.ProcessVirtual),
		ProcessMemory:  int64(b.ProcessMemory), File: int64(b.File), Nice: int32(b.Nice),
	}
}
