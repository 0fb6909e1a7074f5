package gpu

import "fmt"

// Event is a critical error that the driver has reported: an XID, after the numbers of NVIDIA's "XID Errors" catalog.
type Event struct {
	UUID string // of the device; "" if the driver does not say which
	XID  int
}

// Fault says whose fault an XID is, and so what follows from it.
type Fault int

const (
	// Unknown is an XID of which we know nothing. It is written down, and nothing follows: taking cards away because of a number that a newer
	// driver has invented would empty a pool in one upgrade.
	Unknown Fault = iota
	// Notice is something that the driver has dealt with, or that only matters together with another XID.
	Notice
	// Application is what a program does to itself: the task fails, the card is as good as before.
	Application
	// Contained is an error of the card that has cost the tasks on it, and only them: the card goes on.
	Contained
	// Hardware is an error after which the card cannot be trusted before somebody has reset or replaced it.
	Hardware
)

// xid is one line of the table of XIDs.
type xid struct {
	fault Fault
	text  string // what happened, to complete "XID 79: …"
}

// Fault tells what is known of an XID, and what happened in a few words.
//
// The table follows the actions that NVIDIA's catalog recommends for data center cards from Ampere on: restart the application, or reset the
// card. Where both are named the card is left in use unless the state that the driver itself keeps (rows to be remapped, uncorrectable errors,
// a lost card) says otherwise, which is looked at after every event. XID 63 is the case in point: a row of memory is to be replaced at the next
// reset, and until then the card computes correctly.
func (e Event) Fault() (Fault, string) {
	x, ok := xids()[e.XID]
	if !ok {
		return Unknown, "an error that is not known here"
	}
	return x.fault, x.text
}

func xids() map[int]xid {
	return map[int]xid{
		8:   {Application, "the program's work on the card did not end in time"},
		13:  {Application, "a kernel made an illegal access or instruction"},
		31:  {Application, "a kernel touched memory that it does not have"},
		32:  {Application, "a damaged stream of commands"},
		43:  {Application, "the program stopped itself by an error of its own"},
		44:  {Application, "a fault while the card went from one program to another"},
		45:  {Application, "the program's work was removed after an error, or because it was killed"},
		68:  {Application, "an exception of the video decoder"},
		69:  {Application, "a command that the graphics engine does not know"},
		109: {Application, "the card could not leave the program's work in time"},

		63:  {Notice, "a bad row or page of memory is to be replaced at the next reset"},
		92:  {Notice, "many memory errors that could be corrected"},
		93:  {Notice, "the card's own memory of facts is written too often"},
		154: {Notice, "the driver has changed its mind about what the card needs"},

		94: {Contained, "an uncorrectable memory error that hit only the programs that used it"},

		38:  {Hardware, "an error in the card's firmware"},
		46:  {Hardware, "the card stopped working"},
		48:  {Hardware, "an uncorrectable memory error of two bits"},
		61:  {Hardware, "the card's microcontroller reported a fault"},
		62:  {Hardware, "the card's microcontroller halted"},
		64:  {Hardware, "a bad row or page of memory could not be replaced"},
		74:  {Hardware, "an error of an NVLink"},
		79:  {Hardware, "the card has fallen off the bus"},
		81:  {Hardware, "an error of the VGA subsystem"},
		95:  {Hardware, "an uncorrectable memory error that may have hit every program on the card"},
		110: {Hardware, "a fault of the card's security engine"},
		119: {Hardware, "the card's system processor does not answer"},
		120: {Hardware, "the card's system processor reported an error"},
		121: {Hardware, "an error of the link to the processor"},
		140: {Hardware, "an uncorrectable memory error that was not recovered from"},
		143: {Hardware, "the card could not be initialised"},
		145: {Hardware, "an error of an NVLink that takes a reset"},
		149: {Hardware, "an error of an NVLink that takes a reset"},
		155: {Hardware, "an NVLink that is defect"},
		158: {Hardware, "the card did not end its work in time and cannot go on"},
	}
}

// Health is what the device's health is after the event, when it was before so far. A sick device stays sick: its first reason is the one
// to look at, and what it reports later follows from it.
func (e Event) Health(before Health) Health {
	fault, text := e.Fault()
	if fault != Hardware || !before.OK {
		return before
	}
	return Sick(fmt.Sprintf("%s (XID %d): no tasks until it is reset or replaced and the startd started anew", text, e.XID))
}

func (e Event) String() string {
	_, text := e.Fault()
	return fmt.Sprintf("XID %d: %s", e.XID, text)
}
