package roost

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MilliCPU is an amount of CPU: 1000 is one core.
type MilliCPU int64

func (c MilliCPU) String() string { return strconv.FormatFloat(float64(c)/1000, 'f', -1, 64) }

// Cores returns c in cores.
func (c MilliCPU) Cores() float64 { return float64(c) / 1000 }

// Bytes is an amount of memory, disk or data.
type Bytes int64

// The units of Bytes. Every size in Roost is a power of two, as in PBS: "4G", "4GB" and
// "4GiB" are the same.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
	PiB Bytes = 1 << 50
)

var byteUnits = []struct {
	size Bytes
	name string
}{{PiB, "PiB"}, {TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}}

func (b Bytes) String() string {
	for _, u := range byteUnits {
		if b >= u.size || b <= -u.size {
			return strconv.FormatFloat(math.Round(float64(b)/float64(u.size)*100)/100, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// ParseBytes reads a size such as "512MiB", "1.5G", "48828k" or "1024". It is a number
// and one of B, K, M, G, T, P in either case, with or without "iB", "B" or PBS's "w"
// (words of 8 bytes). No unit means bytes. Sizes are not negative.
func ParseBytes(s string) (Bytes, error) {
	text := strings.TrimSpace(s)
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(text)
	}
	n, err := strconv.ParseFloat(text[:end], 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size: write a number and a unit, as in \"4GiB\" or \"512M\"", s)
	}
	unit, ok := byteUnitSize(strings.TrimSpace(text[end:]))
	if !ok {
		return 0, fmt.Errorf("%q has no unit of size that is known: use B, K, M, G, T or P, as in \"4GiB\"", s)
	}
	if v := n * float64(unit); v < math.MaxInt64 {
		return Bytes(math.Ceil(v)), nil
	}
	return 0, fmt.Errorf("%q is more than can be counted (the most is 8191PiB)", s)
}

func byteUnitSize(unit string) (Bytes, bool) {
	u, word := strings.ToLower(unit), Bytes(1)
	switch {
	case strings.HasSuffix(u, "ib"):
		if u = strings.TrimSuffix(u, "ib"); u == "" {
			return 0, false
		}
	case strings.HasSuffix(u, "b"):
		u = strings.TrimSuffix(u, "b")
	case strings.HasSuffix(u, "w"):
		u, word = strings.TrimSuffix(u, "w"), 8
	}
	switch u {
	case "":
		return word, true
	case "k":
		return word * KiB, true
	case "m":
		return word * MiB, true
	case "g":
		return word * GiB, true
	case "t":
		return word * TiB, true
	case "p":
		return word * PiB, true
	}
	return 0, false
}

// Resources is a vector of amounts that a machine has or a task takes.
type Resources struct {
	CPU    MilliCPU
	Memory Bytes
	Disk   Bytes
	GPUs   int

	// GPUMemory is what a task takes of each of its GPUs; 0 means whole GPUs. It has no
	// meaning for a machine: package gpu knows how much of each GPU is free.
	GPUMemory Bytes

	// of a task: zero rates are not requested; of a machine: it states none
	IO IORates `json:",omitzero"`
}

// Add returns r + s, without GPUMemory.
func (r Resources) Add(s Resources) Resources {
	return Resources{CPU: r.CPU + s.CPU, Memory: r.Memory + s.Memory, Disk: r.Disk + s.Disk, GPUs: r.GPUs + s.GPUs,
		IO: r.IO.Add(s.IO)}
}

// Sub returns r - s, which may be negative in places, without GPUMemory.
func (r Resources) Sub(s Resources) Resources {
	return Resources{CPU: r.CPU - s.CPU, Memory: r.Memory - s.Memory, Disk: r.Disk - s.Disk, GPUs: r.GPUs - s.GPUs,
		IO: r.IO.Sub(s.IO)}
}

// FitsIn reports whether r fits into free, in every dimension.
func (r Resources) FitsIn(free Resources) bool {
	return r.CPU <= free.CPU && r.Memory <= free.Memory && r.Disk <= free.Disk && r.GPUs <= free.GPUs &&
		r.IO.FitsIn(free.IO)
}

// IsNegative reports whether any dimension is below zero.
func (r Resources) IsNegative() bool {
	return r.CPU < 0 || r.Memory < 0 || r.Disk < 0 || r.GPUs < 0 || r.GPUMemory < 0 || r.IO.IsNegative()
}

// TimesIn returns how often r fits into free. Dimensions that are zero in r do not count.
// A request of nothing fits 0 times.
func (r Resources) TimesIn(free Resources) int {
	times := math.MaxInt
	for _, d := range [...][2]int64{
		{int64(r.CPU), int64(free.CPU)}, {int64(r.Memory), int64(free.Memory)},
		{int64(r.Disk), int64(free.Disk)}, {int64(r.GPUs), int64(free.GPUs)},
		{int64(r.IO.Disk), int64(free.IO.Disk)}, {int64(r.IO.Network), int64(free.IO.Network)},
	} {
		if d[0] > 0 {
			times = min(times, int(max(d[1], 0)/d[0]))
		}
	}
	if times == math.MaxInt {
		return 0
	}
	return times
}

func (r Resources) String() string {
	s := fmt.Sprintf("%v, %v memory", countText(r.CPU, "cpu"), r.Memory)
	if r.Disk > 0 {
		s += fmt.Sprintf(", %v disk", r.Disk)
	}
	if r.GPUs > 0 {
		s += ", " + countText(r.GPUs, "gpu")
		if r.GPUMemory > 0 {
			s += fmt.Sprintf(" with %v", r.GPUMemory)
		}
	}
	if r.IO.Disk > 0 {
		s += fmt.Sprintf(", %v disk I/O", r.IO.Disk)
	}
	if r.IO.Network > 0 {
		s += fmt.Sprintf(", %v network", r.IO.Network)
	}
	return s
}

// countText returns a number with a noun: "1 cpu", "2.5 cpus".
func countText(n any, thing string) string {
	if text := fmt.Sprint(n); text != "1" {
		return text + " " + thing + "s"
	}
	return "1 " + thing
}
