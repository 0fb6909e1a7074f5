package usagewindow

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/wire"
)

// window is what an attempt used within a part of the wall clock of its node.
type window struct {
	begin         accounting.Millis
	wall, cpu     int64 // milliseconds
	cpuMax, gpu   uint32
	memory, cache int64 // bytes, as the rest
	gpuMemory     int64
	read, written int64
}

// The bounds of a window. What is above them is not said by a node in its senses.
const (
	maxBehind = 48 * time.Hour
	maxAhead  = 10 * time.Minute
	maxWall   = int64(accounting.DayMillis) // a suspended machine has long ones
	maxCores  = 100_000
	maxBytes  = int64(1) << 60
)

// parse checks a window of the wire.
func parse(m *wire.UsageWindow, now time.Time) (w window, ok bool) {
	begin := time.UnixMilli(m.GetBegin())
	if begin.Before(now.Add(-maxBehind)) || begin.After(now.Add(maxAhead)) || m.GetWall() <= 0 ||
		m.GetWall() > maxWall {
		return w, false
	}
	amount := func(v, most int64) int64 { return min(max(v, 0), most) }
	return window{
		begin: accounting.Millis(m.GetBegin()), wall: m.GetWall(), cpu: amount(m.GetCpu(), m.GetWall()*maxCores),
		cpuMax: min(m.GetCpuMax(), maxCores*1000), gpu: min(m.GetGpu(), maxCores*1000),
		memory: amount(m.GetMemory(), maxBytes), cache: amount(m.GetCache(), maxBytes),
		gpuMemory: amount(m.GetGpuMemory(), maxBytes), read: amount(m.GetReadBytes(), maxBytes),
		written: amount(m.GetWriteBytes(), maxBytes),
	}, true
}

func (w *window) message() *wire.UsageWindow {
	return &wire.UsageWindow{Begin: int64(w.begin), Wall: w.wall, Cpu: w.cpu, CpuMax: w.cpuMax, Memory: w.memory,
		Cache: w.cache, Gpu: w.gpu, GpuMemory: w.gpuMemory, ReadBytes: w.read, WriteBytes: w.written}
}

// slot is the begin of the five minutes in which a window begins.
func (w *window) slot() accounting.Millis { return w.begin - w.begin%accounting.UsageWindow }

// join adds a later window of the same attempt in the same five minutes.
func (w *window) join(o *window) {
	if wall := w.wall + o.wall; wall > 0 {
		w.gpu = uint32((int64(w.gpu)*w.wall + int64(o.gpu)*o.wall) / wall)
	}
	w.wall, w.cpu, w.cpuMax = w.wall+o.wall, w.cpu+o.cpu, max(w.cpuMax, o.cpuMax)
	w.memory, w.cache, w.gpuMemory = max(w.memory, o.memory), max(w.cache, o.cache), max(w.gpuMemory, o.gpuMemory)
	w.read, w.written = addBytes(w.read, o.read), addBytes(w.written, o.written)
}

// add adds what another attempt used at the same time.
func (w *window) add(o *window) {
	w.wall, w.cpu = w.wall+o.wall, w.cpu+o.cpu
	w.cpuMax, w.gpu = addMilli(w.cpuMax, o.cpuMax), addMilli(w.gpu, o.gpu)
	w.memory, w.cache, w.gpuMemory = addBytes(w.memory, o.memory), addBytes(w.cache, o.cache),
		addBytes(w.gpuMemory, o.gpuMemory)
	w.read, w.written = addBytes(w.read, o.read), addBytes(w.written, o.written)
}

// addBytes and addMilli are sums that do not go round.
func addBytes(a, b int64) int64 { return min(a+b, maxBytes) }

func addMilli(a, b uint32) uint32 { return uint32(min(uint64(a)+uint64(b), 1<<32-1)) }

// sample is the window as accounting has it.
func (w *window) sample() accounting.UsageSample {
	return accounting.UsageSample{
		CPUMean: roost.MilliCPU(w.cpu * 1000 / w.wall), CPUMax: roost.MilliCPU(w.cpuMax),
		MemoryMax: roost.Bytes(w.memory), Cache: roost.Bytes(w.cache), GPUMax: roost.Bytes(w.gpuMemory),
		GPUMean: int64(w.gpu), Read: roost.Bytes(w.read), Written: roost.Bytes(w.written),
	}
}
