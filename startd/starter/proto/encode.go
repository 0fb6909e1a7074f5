package proto

import "encoding/binary"

// Type is the first byte of a body.
type Type uint8

// What startd says.
const (
	TypeStart   Type = 1  // Order
	TypeStop    Type = 2  // Stop
	TypeSignal  Type = 3  // Kick
	TypeSuspend Type = 4  // Attempt, On: it stands still already
	TypeResume  Type = 5  // Attempt
	TypeRenew   Type = 6  // Lease, Until
	TypeForget  Type = 7  // Attempt
	TypeRelease Type = 8  // nothing
	TypeHold    Type = 9  // On
	TypeLimit   Type = 10 // Attempt, Order.Walltime, Order.WalltimeReason
)

// What a starter says. Journal records are the last three of them.
const (
	TypeHello   Type = 65 // State
	TypeStarted Type = 66 // Attempt, PID, Since
	TypeExited  Type = 67 // Attempt, Exit
	TypeForgot  Type = 68 // Attempt
)

// Message is any message: Type says which of the other fields count.
type Message struct {
	Type    Type
	Order   Order
	Stop    Stop
	Kick    Kick
	Attempt Attempt
	Lease   int64
	Until   int64 // the instant of CLOCK_BOOTTIME in nanoseconds at which the lease ends at the latest, however late this is read; 0: none is said
	On      bool
	State   State // in Started: PID and Since; in Exited: Exit
}

// Append appends the message's frame to b.
func Append(b []byte, m *Message) []byte {
	start := len(b)
	w := writer{append(b, 0, 0, 0, 0)}
	w.body(m)
	binary.LittleEndian.PutUint32(w.b[start:], uint32(len(w.b)-start-4))
	return w.b
}

func (w *writer) body(m *Message) {
	w.b = append(w.b, byte(m.Type))
	switch m.Type {
	case TypeStart:
		w.order(&m.Order)
	case TypeStop:
		w.key(m.Stop.Attempt)
		w.num(uint64(m.Stop.Cause))
		w.flag(m.Stop.Fast)
		w.signed(m.Stop.Notice)
		w.text(m.Stop.Reason)
		w.num(uint64(m.Stop.Signal))
	case TypeSignal:
		w.key(m.Kick.Attempt)
		w.num(uint64(m.Kick.Signal))
		w.flag(m.Kick.All)
	case TypeSuspend:
		w.key(m.Attempt)
		w.flag(m.On)
	case TypeResume, TypeForget, TypeForgot:
		w.key(m.Attempt)
	case TypeRenew:
		w.signed(m.Lease)
		w.signed(m.Until)
	case TypeHold:
		w.flag(m.On)
	case TypeLimit:
		w.key(m.Attempt)
		w.signed(m.Order.Walltime)
		w.text(m.Order.WalltimeReason)
	case TypeHello:
		w.num(uint64(m.State.Phase))
		w.key(m.State.Attempt)
		w.signed(m.State.PID)
		w.signed(m.State.Since)
		w.exit(&m.State.Exit)
		w.signed(m.State.Starter)
	case TypeStarted:
		w.key(m.Attempt)
		w.signed(m.State.PID)
		w.signed(m.State.Since)
	case TypeExited:
		w.key(m.Attempt)
		w.exit(&m.State.Exit)
	}
}

func (w *writer) order(o *Order) {
	w.key(o.Attempt)
	w.text(o.Executable)
	w.texts(o.Arguments)
	w.texts(o.Environment)
	w.text(o.Cwd)
	w.text(o.Stdin)
	w.text(o.Stdout)
	w.text(o.Stderr)
	w.flag(o.Join)
	w.flag(o.Append)
	w.num(uint64(o.Umask))
	w.num(uint64(o.UID))
	w.num(uint64(o.GID))
	w.nums(o.Groups)
	w.signed(o.Walltime)
	w.signed(o.Notice)
	w.signed(o.Lease)
	w.text(o.WalltimeReason)
	w.text(o.IO)
	w.flag(o.Box.Wanted)
	w.text(o.Box.Temp)
	w.num(uint64(len(o.Box.Devices)))
	for _, d := range o.Box.Devices {
		w.text(d.Path)
		w.num(uint64(d.Major))
		w.num(uint64(d.Minor))
	}
	w.texts(o.Restore.Helper)
	w.text(o.Restore.Input)
	w.text(o.Restore.Output)
	w.text(o.Restore.PID)
	w.signed(int64(o.Expendable))
	w.signed(o.Bounds.CPU)
	w.signed(o.Bounds.Address)
	w.signed(o.Bounds.File)
	w.signed(int64(o.Bounds.Nice))
}

func (w *writer) exit(e *Exit) {
	w.signed(int64(e.Code))
	w.signed(int64(e.Signal))
	w.flag(e.Core)
	w.num(uint64(e.Cause))
	w.text(e.Reason)
	w.num(uint64(e.Step))
	w.signed(int64(e.Errno))
	w.signed(e.Wall)
	w.signed(e.UserCPU)
	w.signed(e.SystemCPU)
	w.signed(e.MaxRSS)
}
