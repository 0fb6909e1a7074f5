package roost

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ByteRate is a rate of data in bytes per second.
type ByteRate int64

func (r ByteRate) String() string { return Bytes(r).String() + "/s" }

// MaxByteRate bounds the rates that are read from texts and ads.
const MaxByteRate = ByteRate(PiB)

// IORates are the rates at which a task reads and writes, or a machine can. They are
// divided among tasks like memory.
type IORates struct {
	Disk    ByteRate `json:",omitempty"` // of the disk with the scratch directories, reading and writing each
	Network ByteRate `json:",omitempty"` // of the network, sending and receiving each
}

// Add returns r + s.
func (r IORates) Add(s IORates) IORates { return IORates{r.Disk + s.Disk, r.Network + s.Network} }

// Sub returns r - s, which may be negative in places.
func (r IORates) Sub(s IORates) IORates { return IORates{r.Disk - s.Disk, r.Network - s.Network} }

// Times returns n times r.
func (r IORates) Times(n int) IORates {
	return IORates{r.Disk * ByteRate(n), r.Network * ByteRate(n)}
}

// FitsIn reports whether r fits into free. A rate of 0 fits wherever it is not requested.
func (r IORates) FitsIn(free IORates) bool {
	return (r.Disk <= free.Disk || r.Disk == 0) && (r.Network <= free.Network || r.Network == 0)
}

// IsNegative reports whether a rate is below zero.
func (r IORates) IsNegative() bool { return r.Disk < 0 || r.Network < 0 }

// Max returns the larger of each rate.
func (r IORates) Max(s IORates) IORates {
	return IORates{max(r.Disk, s.Disk), max(r.Network, s.Network)}
}

// Min returns the smaller of each rate.
func (r IORates) Min(s IORates) IORates {
	return IORates{min(r.Disk, s.Disk), min(r.Network, s.Network)}
}

// ParseByteRate reads a rate such as "50MB/s", "1.5GiB/s" or "100Mbit/s". In bytes, the
// units are those of ParseBytes, powers of 1024. In bits they are k, M, G and T, powers
// of 1000, as network hardware has them; "Mbps" is the same as "Mbit/s".
func ParseByteRate(s string) (ByteRate, error) {
	text := strings.TrimSpace(s)
	if bits, ok := cutBitUnit(text); ok {
		return parseBitRate(s, bits)
	}
	size, ok := strings.CutSuffix(text, "/s")
	if !ok {
		return 0, fmt.Errorf("%q is no rate: write an amount per second, as in \"50MB/s\" or \"100Mbit/s\"", s)
	}
	if strings.ContainsAny(size, "wW") {
		return 0, fmt.Errorf("%q has no unit of a rate that is known: use \"50MB/s\" or \"100Mbit/s\"", s)
	}
	n, err := ParseBytes(size)
	if err != nil {
		return 0, fmt.Errorf("%q is no rate: %w", s, err)
	}
	return checkByteRate(s, float64(n))
}

// cutBitUnit cuts the unit of bits per second off a text.
func cutBitUnit(text string) (number string, ok bool) {
	for _, unit := range []string{"bits/s", "bit/s", "bps"} {
		if number, ok = strings.CutSuffix(text, unit); ok {
			return number, true
		}
	}
	return "", false
}

// parseBitRate reads a number with a prefix, of bits per second.
func parseBitRate(s, text string) (ByteRate, error) {
	factor, text := 1.0, strings.TrimSpace(text)
	if n := len(text); n > 0 {
		if at := strings.IndexByte("kmgt", text[n-1]|0x20); at >= 0 {
			factor, text = math.Pow(1000, float64(at+1)), text[:n-1]
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no rate: write a number and a unit, as in \"100Mbit/s\"", s)
	}
	return checkByteRate(s, n*factor/8)
}

func checkByteRate(s string, perSecond float64) (ByteRate, error) {
	if !(perSecond >= 0 && perSecond <= float64(MaxByteRate)) {
		return 0, fmt.Errorf("%q is out of range: the most is %v", s, MaxByteRate)
	}
	return ByteRate(math.Ceil(perSecond)), nil
}
