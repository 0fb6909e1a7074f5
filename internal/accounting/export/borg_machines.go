package export

import (
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/roost-batch/roost/internal/accounting"
)

// machineTable returns the table of machines.
func (t *BorgTrace) machineTable() *Table[accounting.MachineEvent] {
	type event = accounting.MachineEvent
	kinds := borgMachineTypes()
	return &Table[event]{Name: "machine_events", Columns: []Column[event]{
		{Name: "time", About: "microseconds; the trace begins at 600,000,000; 0 is before it, 2^63-1 after it",
			value: func(m *event) cell { return integerOf(t.time(m.Time)) }},
		{Name: "machine_id", About: "number of the machine, from a hash of its name; 0: none",
			value: func(m *event) cell { return integerOf(t.machine(m.Node)) }},
		{Name: "type", About: "1 added, 2 removed, 3 updated",
			value: func(m *event) cell { return integerOf(kinds[m.What]) }},
		noValue[event]("switch_id"),
		{Name: "capacity.cpus", About: "CPUs of the machine",
			value: func(m *event) cell { return t.cpus(m.Capacity.CPU) }},
		{Name: "capacity.memory", About: "memory of the machine",
			value: func(m *event) cell { return t.memory(m.Capacity.Memory) }},
		{Name: "platform_id", About: "hash of the class of the machine",
			value: func(m *event) cell { return textOf(t.name("platform", m.Class)) }},
		constant[event]("missing_data_reason", "0: nothing is missing", 0),
	}}
}

// borgMachineTypes are the types of events of machines. Others are attributes, or left
// out.
func borgMachineTypes() map[accounting.MachineChange]int {
	return map[accounting.MachineChange]int{accounting.MachineAdded: 1, accounting.MachineRemoved: 2,
		accounting.MachineUpdated: 3}
}

// WriteMachineEvents writes machine_events. Machines that were there before the window
// come first, as MachinesAt of [accounting.Reader] gives them.
func (t *BorgTrace) WriteMachineEvents(w io.Writer, events iter.Seq2[accounting.MachineEvent, error]) (int64, error) {
	kinds := borgMachineTypes()
	return writeBorg(t.machineTable(), w, func(yield func(accounting.MachineEvent, error) bool) {
		for m, err := range events {
			if err == nil && kinds[m.What] == 0 {
				continue
			}
			if !yield(m, err) {
				return
			}
		}
	})
}

// borgAttribute is a change of an attribute of a machine.
type borgAttribute struct {
	*accounting.MachineEvent
	name, value string // value is empty if the attribute is deleted
}

// WriteMachineAttributes writes machine_attributes: class, GPUs, and whether a machine is
// drained. When the owner of a machine used it is not in a trace.
func (t *BorgTrace) WriteMachineAttributes(w io.Writer, events iter.Seq2[accounting.MachineEvent, error]) (int64,
	error,
) {
	return writeBorg(t.attributeTable(), w, func(yield func(borgAttribute, error) bool) {
		for m, err := range events {
			if err != nil {
				yield(borgAttribute{}, err)
				return
			}
			for _, a := range t.attributes(&m) {
				if !yield(a, nil) {
					return
				}
			}
		}
	})
}

func (t *BorgTrace) attributes(m *accounting.MachineEvent) []borgAttribute {
	switch m.What {
	case accounting.MachineAdded, accounting.MachineUpdated:
		return slices.DeleteFunc([]borgAttribute{
			{m, "class", t.name("platform", m.Class)}, {m, "gpus", strconv.Itoa(m.Capacity.GPUs)},
		}, func(a borgAttribute) bool { return a.value == "" })
	case accounting.MachineDrained:
		return []borgAttribute{{m, "drained", "1"}}
	case accounting.MachineUndrained:
		return []borgAttribute{{m, "drained", ""}}
	}
	return nil
}

func (t *BorgTrace) attributeTable() *Table[borgAttribute] {
	return &Table[borgAttribute]{Name: "machine_attributes", Columns: []Column[borgAttribute]{
		{Name: "time", About: "microseconds; the trace begins at 600,000,000; 0 is before it, 2^63-1 after it",
			value: func(a *borgAttribute) cell { return integerOf(t.time(a.Time)) }},
		{Name: "machine_id", About: "number of the machine, from a hash of its name; 0: none",
			value: func(a *borgAttribute) cell { return integerOf(t.machine(a.Node)) }},
		{Name: "name", About: "hash of the attribute: class, gpus or drained",
			value: func(a *borgAttribute) cell { return textOf(t.name("attribute", a.name)) }},
		{Name: "value", About: "hash of the class, the number of GPUs, or 1",
			value: func(a *borgAttribute) cell { return textOf(a.value) }},
		{Name: "deleted", About: "whether the machine has the attribute no more",
			value: func(a *borgAttribute) cell { return boolOf(a.value == "") }},
	}}
}
