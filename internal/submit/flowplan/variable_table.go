package flowplan

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/submit/dag"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

// variableTable has the variables of some nodes, by column.
type variableTable struct {
	flow      *dag.Flow
	nodes     []graph.NodeID
	variables []nodeVariable
	isUniform bool // all nodes have the same values
}

// nodeVariable is a variable, with its value for each node.
type nodeVariable struct {
	name   string
	values []graph.TextID // by node; noValue: the node does not have it
	places []dag.VariablePlacement
}

const noValue = ^graph.TextID(0)

// variablesOf returns the variables of nodes, in the order in which they appear.
func (c *compiler) variablesOf(nodes []graph.NodeID) *variableTable {
	t := &variableTable{flow: c.flow, nodes: nodes}
	numbers := map[graph.TextID]int{}
	for i, id := range nodes {
		n := c.flow.Graph.Node(id)
		if n.Vars == 0 {
			continue
		}
		for _, v := range c.flow.Variables(n) {
			number, ok := numbers[v.Name]
			if !ok {
				number = len(t.variables)
				numbers[v.Name] = number
				one := nodeVariable{name: c.flow.Texts.Text(v.Name), values: make([]graph.TextID, len(nodes)),
					places: make([]dag.VariablePlacement, len(nodes))}
				for k := range one.values {
					one.values[k] = noValue
				}
				t.variables = append(t.variables, one)
			}
			if v.Placement == dag.DefaultPlacement && c.options.AppendVariables {
				v.Placement = dag.Appended
			}
			t.variables[number].values[i], t.variables[number].places[i] = v.Value, v.Placement
		}
	}
	return t
}

// slice returns some of the nodes. It shares the values with t.
func (t *variableTable) slice(low, high int) *variableTable {
	part := &variableTable{flow: t.flow, nodes: t.nodes[low:high], variables: slices.Clone(t.variables)}
	for i, v := range part.variables {
		part.variables[i].values, part.variables[i].places = v.values[low:high], v.places[low:high]
	}
	return part
}

// subset returns the nodes with some positions.
func (t *variableTable) subset(positions []uint32) *variableTable {
	part := &variableTable{flow: t.flow, nodes: make([]graph.NodeID, len(positions))}
	for i, p := range positions {
		part.nodes[i] = t.nodes[p]
	}
	for _, v := range t.variables {
		one := nodeVariable{name: v.name, values: make([]graph.TextID, len(positions)),
			places: make([]dag.VariablePlacement, len(positions))}
		for i, p := range positions {
			one.values[i], one.places[i] = v.values[p], v.places[p]
		}
		part.variables = append(part.variables, one)
	}
	return part
}

// partition returns the nodes by which variables they have, and with shapes by the
// shapes of these.
func (t *variableTable) partition(shapes bool) []*variableTable {
	numbers := map[string]uint32{} // of shapes
	known := map[graph.TextID]uint32{}
	return t.split(func(key []byte, i int) []byte {
		for _, v := range t.variables {
			value := v.values[i]
			number := uint32(0)
			if value != noValue {
				number = 1
			}
			if number == 1 && shapes {
				var ok bool
				if number, ok = known[value]; !ok {
					shape := shapeOf(t.flow.Texts.Bytes(value))
					if number, ok = numbers[string(shape)]; !ok {
						number = uint32(len(numbers)) + 1
						numbers[string(shape)] = number
					}
					known[value] = number
				}
				number = number<<2 | uint32(v.places[i])
			}
			key = binary.LittleEndian.AppendUint32(key, number)
		}
		return key
	})
}

// partitionBy returns the nodes by the values of some variables.
func (t *variableTable) partitionBy(names []string) []*variableTable {
	return t.split(func(key []byte, i int) []byte {
		for _, v := range t.variables {
			if slices.Contains(names, v.name) {
				key = binary.LittleEndian.AppendUint32(key, uint32(v.values[i]))
			}
		}
		return key
	})
}

// split returns the nodes by keys, in the order of their first nodes.
func (t *variableTable) split(keyOf func(key []byte, i int) []byte) []*variableTable {
	if len(t.variables) == 0 {
		return []*variableTable{t.withoutAbsent()}
	}
	numbers := map[string]int{}
	var positions [][]uint32
	key := []byte(nil)
	for i := range t.nodes {
		key = keyOf(key[:0], i)
		number, ok := numbers[string(key)]
		if !ok {
			number = len(positions)
			numbers[string(key)] = number
			positions = append(positions, nil)
		}
		positions[number] = append(positions[number], uint32(i))
	}
	if len(positions) == 1 {
		return []*variableTable{t.withoutAbsent()}
	}
	parts := make([]*variableTable, len(positions))
	for i, p := range positions {
		parts[i] = t.subset(p).withoutAbsent()
	}
	return parts
}

// withoutAbsent removes the variables that the nodes do not have, of which all have the
// same.
func (t *variableTable) withoutAbsent() *variableTable {
	t.variables = slices.DeleteFunc(t.variables, func(v nodeVariable) bool { return v.values[0] == noValue })
	return t
}

// constant returns the value of a variable that is the same for all nodes.
func (v *nodeVariable) constant() (graph.TextID, bool) {
	for _, value := range v.values {
		if value != v.values[0] {
			return 0, false
		}
	}
	return v.values[0], true
}

// isWordByte reports whether a byte of a value never separates words, in no command of a
// submit description.
func isWordByte(c byte) bool {
	return c >= 0x80 || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
		strings.IndexByte("_./+-:@%^~", c) >= 0
}

// forEachWord calls f for the parts of a value in their order: words, and what is between
// them. A name in front of = is no word: it is that of an environment variable.
func forEachWord(value []byte, f func(part []byte, isWord bool)) {
	for i := 0; i < len(value); {
		end := i
		for end < len(value) && isWordByte(value[end]) {
			end++
		}
		switch {
		case end == i:
			for end < len(value) && !isWordByte(value[end]) {
				end++
			}
			if bytes.IndexByte(value[i:end], '$') >= 0 { // $(NAME), $F(NAME)
				for end < len(value) && value[end] != ')' {
					end++
				}
			}
			f(value[i:end], false)
		case end < len(value) && value[end] == '=' && !strings.ContainsAny(string(value[i:end]), "./+-:@%^~"):
			end++
			f(value[i:end], false)
		default:
			f(value[i:end], true)
		}
		i = end
	}
}

// shapeOf returns a value with a NUL in place of each word.
func shapeOf(value []byte) (shape []byte) {
	forEachWord(value, func(part []byte, isWord bool) {
		if isWord {
			part = []byte{0}
		}
		shape = append(shape, part...)
	})
	return shape
}
