package config

// Load reads a node file and fills in what it leaves out. An error is of kind roost.NoInput when the file cannot be read, and otherwise of
// kind roost.BadConfig: its text shows every mistake with file, line, column, the line itself, a caret, the cause and the cure.
func Load(file string) (*Node, error) { panic("not reached") }
