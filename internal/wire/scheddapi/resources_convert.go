package scheddapi

import "github.com/roost-batch/roost"

// FromResources converts a vector to its message.
func FromResources(r roost.Resources) *Resources {
	return &Resources{MilliCpu: int64(r.CPU), Memory: int64(r.Memory), Disk: int64(r.Disk), Gpus: int64(r.GPUs),
		GpuMemory: int64(r.GPUMemory), DiskIo: int64(r.IO.Disk), Network: int64(r.IO.Network)}
}

// Vector converts the message to a vector; a nil message is a vector of nothing.
func (r *Resources) Vector() roost.Resources {
	return roost.Resources{
		CPU: roost.MilliCPU(r.GetMilliCpu()), Memory: roost.Bytes(r.GetMemory()),
		Disk: roost.Bytes(r.GetDisk()), GPUs: int(r.GetGpus()), GPUMemory: roost.Bytes(r.GetGpuMemory()),
		IO: roost.IORates{Disk: roost.ByteRate(r.GetDiskIo()), Network: roost.ByteRate(r.GetNetwork())},
	}
}
