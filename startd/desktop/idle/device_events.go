package idle

import (
	"encoding/binary"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// Codes of linux/input-event-codes.h and of linux/input.h.
const (
	evKey, evRel, evAbs, evSwitch = 1, 2, 3, 5
	synDropped                    = 3 // of type 0: some input was lost, as there was too much

	keyVolumeUp = 115
	btnJoystick = 0x120
	btnGamepad  = 0x130
	btnToolPen  = 0x140
	keyMax      = 0x2ff

	relX              = 0
	propAccelerometer = 6
)

// deviceKind defines which events of a device count as input by a person.
type deviceKind byte

const (
	noPerson  deviceKind = iota // power buttons, lids, headphone plugs, accelerometers
	everyMove                   // keyboards, mice, touch screens, tablets
	keysOnly                    // joysticks, whose axes jitter without input
)

// kernelBitmap is a bitmap as the kernel returns it, in words of native byte order.
type kernelBitmap []byte

func (b kernelBitmap) isSet(n int) bool {
	if n/64*8+8 > len(b) {
		return false
	}
	return binary.NativeEndian.Uint64(b[n/64*8:])>>(n%64)&1 == 1
}

// deviceKindOf returns the kind of a device from its capabilities. They are its event
// types, its keys, its relative axes and its properties.
func deviceKindOf(types, keys, moves, props kernelBitmap) deviceKind {
	if props.isSet(propAccelerometer) {
		return noPerson
	}
	for _, key := range []int{keyEnter, keySpace, keyVolumeUp, btnLeft, btnTouch, btnToolPen} {
		if types.isSet(evKey) && keys.isSet(key) {
			return everyMove
		}
	}
	if types.isSet(evRel) && moves.isSet(relX) {
		return everyMove
	}
	if types.isSet(evKey) && (keys.isSet(btnJoystick) || keys.isSet(btnGamepad)) {
		return keysOnly
	}
	return noPerson
}

// probeDevice reads the capabilities of a device, and sets the clock of its event times
// to CLOCK_BOOTTIME.
func probeDevice(fd int) (kind deviceKind, name string, err error) {
	var types, keys, moves, props [(keyMax + 1) / 8]byte
	for _, q := range []struct {
		number uint
		to     []byte
	}{{0x20, types[:8]}, {0x20 + evKey, keys[:]}, {0x20 + evRel, moves[:8]}, {0x09, props[:8]}} {
		// EVIOCGBIT(0), of keys, of relative axes, EVIOCGPROP
		if err := readBits(fd, q.number, q.to); err != nil {
			return noPerson, "", err
		}
	}
	text := make([]byte, 80)
	if readBits(fd, 0x06, text) == nil { // EVIOCGNAME
		name, _, _ = strings.Cut(string(text), "\x00")
	}
	// if that fails the time of reading is used
	_ = unix.IoctlSetPointerInt(fd, eviocsclockid, unix.CLOCK_BOOTTIME)
	return deviceKindOf(types[:8], keys[:], moves[:8], props[:8]), name, nil
}

// eviocsclockid is _IOW('E', 0xa0, int), and readBits uses _IOR('E', number, len(to)).
// All architectures of Roost encode them so (asm-generic/ioctl.h).
const eviocsclockid = 1<<30 | 4<<16 | 'E'<<8 | 0xa0

func readBits(fd int, number uint, to []byte) error {
	request := 2<<30 | uintptr(len(to))<<16 | 'E'<<8 | uintptr(number)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&to[0]))); errno != 0 {
		return errno
	}
	return nil
}

// eventSize is the size of struct input_event. Its fields are a time in seconds and
// microseconds, a type, a code and a value.
const eventSize = int(unsafe.Sizeof(unix.Timeval{})) + 8

// lastInputEvent returns the time of the last event that counts as input by a person. For
// an event with the time of another clock, or none, it uses the time of reading.
func lastInputEvent(events []byte, kind deviceKind, now roost.BootTime) (at roost.BootTime, ok bool) {
	for ; len(events) >= eventSize; events = events[eventSize:] {
		code := events[eventSize-8:]
		switch t := binary.NativeEndian.Uint16(code); {
		case t == evKey, t == evSwitch, t == evRel, t == evAbs && kind == everyMove,
			t == 0 && binary.NativeEndian.Uint16(code[2:]) == synDropped:
		default:
			continue
		}
		stamp := (*unix.Timeval)(unsafe.Pointer(&events[0])).Nano()
		if at, ok = roost.BootTime(stamp), true; at <= 0 || at > now || now-at > maxEventAge {
			at = now
		}
	}
	return at, ok
}

// maxEventAge is how old an event may be when it is read. Only events from before the
// machine slept are older.
const maxEventAge = 10 * time.Second
