package gpu

import "fmt"

// XIDEvent is a critical error that the driver has reported. Its number is an XID of
// NVIDIA's "XID Errors" catalog.
type XIDEvent struct {
	UUID string // of the device; "" if the driver does not report it
	XID  int
}

// XIDClass classifies an XID by its cause, which decides the consequences.
type XIDClass int

const (
	// UnknownXID is an XID that is not in the table. It is logged without consequences: a
	// number that a newer driver introduces would otherwise disable all cards of a pool
	// in one upgrade.
	UnknownXID XIDClass = iota
	// NoticeXID is an error that the driver has handled, or that matters only together
	// with another XID.
	NoticeXID
	// ApplicationXID is an error of a program: its task fails, the card is unaffected.
	ApplicationXID
	// ContainedXID is an error of the card that affects only the tasks on it: the card
	// remains usable.
	ContainedXID
	// HardwareXID is an error after which the card must not be used until an
	// administrator has reset or replaced it.
	HardwareXID
)

// xidEntry is one line of the table of XIDs.
type xidEntry struct {
	class XIDClass
	text  string // description of the error, which completes "XID 79: …"
}

// Class returns the class of an XID, and a short description of the error.
//
// The table follows the actions that NVIDIA's catalog recommends for data center cards
// from Ampere on: restart the application, or reset the card. Where both are recommended
// the card remains in use unless the state that the driver reports (rows to be remapped,
// uncorrectable errors, a lost card) requires otherwise; it is read after every event. An
// example is XID 63: a row of memory will be replaced at the next reset, and until then
// the card computes correctly.
func (e XIDEvent) Class() (XIDClass, string) {
	x, ok := xidTable()[e.XID]
	if !ok {
		return UnknownXID, "an error that is not known here"
	}
	return x.class, x.text
}

func xidTable() map[int]xidEntry {
	return map[int]xidEntry{
		8:   {ApplicationXID, "the program's work on the card did not end in time"},
		13:  {ApplicationXID, "a kernel made an illegal access or instruction"},
		31:  {ApplicationXID, "a kernel touched memory that it does not have"},
		32:  {ApplicationXID, "a damaged stream of commands"},
		43:  {ApplicationXID, "the program stopped itself by an error of its own"},
		44:  {ApplicationXID, "a fault while the card went from one program to another"},
		45:  {ApplicationXID, "the program's work was removed after an error, or because it was killed"},
		68:  {ApplicationXID, "an exception of the video decoder"},
		69:  {ApplicationXID, "a command that the graphics engine does not know"},
		109: {ApplicationXID, "the card could not leave the program's work in time"},

		63:  {NoticeXID, "a bad row or page of memory is to be replaced at the next reset"},
		92:  {NoticeXID, "many memory errors that could be corrected"},
		93:  {NoticeXID, "the card's own memory of facts is written too often"},
		154: {NoticeXID, "the driver has changed its mind about what the card needs"},

		94: {ContainedXID, "an uncorrectable memory error that hit only the programs that used it"},

		38:  {HardwareXID, "an error in the card's firmware"},
		46:  {HardwareXID, "the card stopped working"},
		48:  {HardwareXID, "an uncorrectable memory error of two bits"},
		61:  {HardwareXID, "the card's microcontroller reported a fault"},
		62:  {HardwareXID, "the card's microcontroller halted"},
		64:  {HardwareXID, "a bad row or page of memory could not be replaced"},
		74:  {HardwareXID, "an error of an NVLink"},
		79:  {HardwareXID, "the card has fallen off the bus"},
		81:  {HardwareXID, "an error of the VGA subsystem"},
		95:  {HardwareXID, "an uncorrectable memory error that may have hit every program on the card"},
		110: {HardwareXID, "a fault of the card's security engine"},
		119: {HardwareXID, "the card's system processor does not answer"},
		120: {HardwareXID, "the card's system processor reported an error"},
		121: {HardwareXID, "an error of the link to the processor"},
		140: {HardwareXID, "an uncorrectable memory error that was not recovered from"},
		143: {HardwareXID, "the card could not be initialised"},
		145: {HardwareXID, "an error of an NVLink that takes a reset"},
		149: {HardwareXID, "an error of an NVLink that takes a reset"},
		155: {HardwareXID, "an NVLink that is defect"},
		158: {HardwareXID, "the card did not end its work in time and cannot go on"},
	}
}

// Health returns the device's health after the event, given its health before. An
// unhealthy device stays unhealthy with its first reason, because later events usually
// follow from it.
func (e XIDEvent) Health(before DeviceHealth) DeviceHealth {
	fault, text := e.Class()
	if fault != HardwareXID || !before.OK {
		return before
	}
	return Unhealthy(fmt.Sprintf("%s (XID %d): no tasks until it is reset or replaced and the startd started anew",
		text, e.XID))
}

func (e XIDEvent) String() string {
	_, text := e.Class()
	return fmt.Sprintf("XID %d: %s", e.XID, text)
}
