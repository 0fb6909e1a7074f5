package idle

import (
	"encoding/binary"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Codes of linux/input-event-codes.h and of linux/input.h.
const (
	evKey, evRel, evAbs, evSwitch = 1, 2, 3, 5
	synDropped                    = 3 // of type 0: there was so much input that some was lost

	keyVolumeUp = 115
	btnJoystick = 0x120
	btnGamepad  = 0x130
	btnToolPen  = 0x140
	keyMax      = 0x2ff

	relX              = 0
	propAccelerometer = 6
)

// deviceKind is what of a device's events is a person's doing.
type deviceKind byte

const (
	noPerson  deviceKind = iota // power buttons, lids, the plugs of headphones, accelerometers
	everyMove                   // keyboards, mice, touch screens, tablets
	keysOnly                    // joysticks, whose axes tremble while nobody is there
)

// kernelBitmap is a bit map as the kernel gives it: of words in its own order.
type kernelBitmap []byte

func (b kernelBitmap) isSet(n int) bool {
	if n/64*8+8 > len(b) {
		return false
	}
	return binary.NativeEndian.Uint64(b[n/64*8:])>>(n%64)&1 == 1
}

// deviceKindOf judges a device by what it can do: the types of its events, its keys, its
// axes that move, its properties.
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

// probeDevice asks a device of the kernel's what it is, and has it stamp its events with
// the clock of instants.
func probeDevice(fd int) (kind deviceKind, name string, err error) {
	var types, keys, moves, props [(keyMax + 1) / 8]byte
	for _, q := range []struct {
		number uint
		to     []byte
	}{{0x20, types[:8]}, {0x20 + evKey, keys[:]}, {0x20 + evRel, moves[:8]}, {0x09, props[:8]}} {
		// EVIOCGBIT(0), of keys, of axes that move, EVIOCGPROP
		if err := readBits(fd, q.number, q.to); err != nil {
			return noPerson, "", err
		}
	}
	text := make([]byte, 80)
	if readBits(fd, 0x06, text) == nil { // EVIOCGNAME
		name, _, _ = strings.Cut(string(text), "\x00")
	}
	// where it does not, the time of reading is taken
	_ = unix.IoctlSetPointerInt(fd, eviocsclockid, unix.CLOCK_BOOTTIME)
	return deviceKindOf(types[:8], keys[:], moves[:8], props[:8]), name, nil
}

// eviocsclockid is _IOW('E', 0xa0, int), and readBits does _IOR('E', number, len(to)), as
// all architectures that Roost is built for have them (asm-generic/ioctl.h).
const eviocsclockid = 1<<30 | 4<<16 | 'E'<<8 | 0xa0

func readBits(fd int, number uint, to []byte) error {
	request := 2<<30 | uintptr(len(to))<<16 | 'E'<<8 | uintptr(number)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&to[0]))); errno != 0 {
		return errno
	}
	return nil
}

// eventSize is that of struct input_event: a time, of seconds and microseconds, a type, a
// code, a value.
const eventSize = int(unsafe.Sizeof(unix.Timeval{})) + 8

// lastInputEvent finds the last of some events that is a person's doing. Of an event that
// carries another clock's time, or none, the time of reading is taken.
func lastInputEvent(events []byte, kind deviceKind, now BootTime) (at BootTime, ok bool) {
	for ; len(events) >= eventSize; events = events[eventSize:] {
		code := events[eventSize-8:]
		switch t := binary.NativeEndian.Uint16(code); {
		case t == evKey, t == evSwitch, t == evRel, t == evAbs && kind == everyMove,
			t == 0 && binary.NativeEndian.Uint16(code[2:]) == synDropped:
		default:
			continue
		}
		stamp := (*unix.Timeval)(unsafe.Pointer(&events[0])).Nano()
		if at, ok = BootTime(stamp), true; at <= 0 || at > now || now-at > maxEventAge {
			at = now
		}
	}
	return at, ok
}

// maxEventAge is how old an event may be when it is read. Nothing waits for so long but
// what lay there while the machine slept.
const maxEventAge = 10 * time.Second
