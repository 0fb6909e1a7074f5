package sacct

import (
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// appendElapsed appends a duration as [D-]HH:MM:SS.
func appendElapsed(b []byte, seconds int64) []byte {
	seconds = max(seconds, 0)
	if days := seconds / 86400; days > 0 {
		b = append(strconv.AppendInt(b, days, 10), '-')
	}
	return AppendClock(b, seconds%86400)
}

// AppendClock appends seconds as HH:MM:SS, with more digits for 100 hours and more.
func AppendClock(b []byte, seconds int64) []byte {
	seconds = max(seconds, 0)
	b = append(appendTwoDigits(b, seconds/3600), ':')
	b = append(appendTwoDigits(b, seconds/60%60), ':')
	return appendTwoDigits(b, seconds%60)
}

func appendTwoDigits(b []byte, n int64) []byte {
	if n < 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, n, 10)
}

// appendCPUTime appends milliseconds as [D-]HH:MM:SS, or MM:SS.mmm below one hour.
func appendCPUTime(b []byte, millis int64) []byte {
	millis = max(millis, 0)
	if millis >= 3600_000 {
		return appendElapsed(b, millis/1000)
	}
	b = append(appendTwoDigits(b, millis/60_000), ':')
	b = append(appendTwoDigits(b, millis/1000%60), '.')
	return append(b, strconv.Itoa(int(1000 + millis%1000))[1:]...)
}

// KiB returns an amount in units of 1024 bytes, rounded up.
func KiB(n roost.Bytes) int64 {
	n = max(n, 0)
	if n%roost.KiB != 0 {
		return int64(n/roost.KiB) + 1
	}
	return int64(n / roost.KiB)
}

// appendSize appends an amount in the largest of K, M, G, T and P that divides it. Bytes
// are rounded up to K.
func appendSize(b []byte, n roost.Bytes) []byte {
	kib, unit := KiB(n), 0
	for ; kib > 0 && kib%1024 == 0 && unit < len(sizeUnits)-1; unit++ {
		kib /= 1024
	}
	if kib == 0 {
		return append(b, '0')
	}
	return append(strconv.AppendInt(b, kib, 10), sizeUnits[unit])
}

const sizeUnits = "KMGTP"

// appendKiB appends an amount in K, rounded up.
func appendKiB(b []byte, n roost.Bytes) []byte {
	return append(strconv.AppendInt(b, KiB(n), 10), 'K')
}

// appendTRES appends amounts as a list of trackable resources.
func appendTRES(b []byte, r *roost.Resources) []byte {
	b = strconv.AppendInt(append(b, "cpu="...), CPUs(r.CPU), 10)
	if r.GPUs > 0 {
		b = strconv.AppendInt(append(b, ",gres/gpu="...), int64(r.GPUs), 10)
	}
	if r.Memory > 0 {
		b = appendSize(append(b, ",mem="...), r.Memory)
	}
	return append(b, ",node=1"...)
}

// appendTime appends a time without a zone, as Slurm writes it, in the zone of the
// options.
func (o *Options) appendTime(b []byte, t accounting.Millis) []byte {
	switch {
	case t <= 0:
		return append(b, "Unknown"...)
	case o.UnixTimes:
		return strconv.AppendInt(b, int64(t)/1000, 10)
	}
	return time.UnixMilli(int64(t)).In(o.Location).AppendFormat(b, "2006-01-02T15:04:05")
}
