package proto

import "encoding/binary"

// Next splits the first frame off b. With less than a whole frame in b, body is nil; ok is false when the length cannot be right.
func Next(b []byte) (body, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, b, true
	}
	size := binary.LittleEndian.Uint32(b)
	if size == 0 || size > MaxFrame {
		return nil, b, false
	}
	if uint64(len(b)-4) < uint64(size) {
		return nil, b, true
	}
	return b[4 : 4+size], b[4+size:], true
}

// Decode reads the body of a frame; false when it makes no sense.
func Decode(body []byte) (m Message, ok bool) {
	if len(body) == 0 {
		return Message{}, false
	}
	m.Type = Type(body[0])
	r := reader{b: body[1:]}
	switch m.Type {
	case TypeStart:
		r.order(&m.Order)
	case TypeStop:
		m.Stop = Stop{Attempt: r.key(), Cause: Cause(r.num()), Fast: r.flag(), Notice: r.signed(), Reason: r.text(), Signal: r.small()}
	case TypeSignal:
		m.Kick = Kick{Attempt: r.key(), Signal: r.small(), All: r.flag()}
	case TypeSuspend:
		m.Attempt = r.key()
		m.On = len(r.b) > 0 && r.flag() // an older startd says nothing of it
	case TypeResume, TypeForget, TypeForgot:
		m.Attempt = r.key()
	case TypeRenew:
		m.Lease, m.Until = r.signed(), r.signed() // an older startd says nothing of the second
	case TypeRelease:
	case TypeHold:
		m.On = r.flag()
	case TypeLimit:
		m.Attempt = r.key()
		m.Order.Walltime, m.Order.WalltimeReason = r.signed(), r.text()
	case TypeHello:
		m.State = State{Phase: Phase(r.num()), Attempt: r.key(), PID: r.signed(), Since: r.signed(), Exit: r.exit(), Starter: r.signed()}
	case TypeStarted:
		m.Attempt = r.key()
		m.State.PID, m.State.Since = r.signed(), r.signed()
	case TypeExited:
		m.Attempt = r.key()
		m.State.Exit = r.exit()
	default:
		return Message{}, false
	}
	return m, !r.bad
}

// maxDevices bounds the devices of a box.
const maxDevices = 1024

func (r *reader) order(o *Order) {
	o.Attempt = r.key()
	o.Executable = r.text()
	o.Arguments = r.texts()
	o.Environment = r.texts()
	o.Cwd = r.text()
	o.Stdin = r.text()
	o.Stdout = r.text()
	o.Stderr = r.text()
	o.Join = r.flag()
	o.Append = r.flag()
	o.Umask = r.small()
	o.UID = r.small()
	o.GID = r.small()
	o.Groups = r.nums()
	o.Walltime = r.signed()
	o.Notice = r.signed()
	o.Lease = r.signed()
	o.WalltimeReason = r.text()
	o.IO = r.text()
	o.Box.Wanted = r.flag()
	o.Box.Temp = r.text()
	for n := r.num(); n > 0 && !r.bad && len(o.Box.Devices) < maxDevices; n-- {
		o.Box.Devices = append(o.Box.Devices, Device{Path: r.text(), Major: r.small(), Minor: r.small()})
	}
	o.Restore.Helper = r.texts()
	o.Restore.Input = r.text()
	o.Restore.Output = r.text()
	o.Restore.PID = r.text()
	o.Expendable = int32(r.signed())
	if len(r.b) > 0 { // an older startd says nothing of them
		o.Bounds = Bounds{CPU: r.signed(), Address: r.signed(), File: r.signed(), Nice: int32(r.signed())}
	}
}

func (r *reader) exit() Exit {
	return Exit{
		Code: int32(r.signed()), Signal: int32(r.signed()), Core: r.flag(), Cause: Cause(r.num()), Reason: r.text(),
		Step: Step(r.num()), Errno: int32(r.signed()), Wall: r.signed(), UserCPU: r.signed(), SystemCPU: r.signed(), MaxRSS: r.signed(),
	}
}
