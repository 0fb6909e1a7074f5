package qsub

import "strings"

// OptionValue is one option with its value.
type OptionValue struct {
	Letter byte
	Value  string
}

// Roost's own options of qsub have long names, so that none is in the way of one of PBS.
// They have no letters that can be written.
const (
	cellOption  = '\x01' // --cell
	localOption = '\x02' // --local
)

// longOption returns the option that a word with two dashes is.
func longOption(word string) (letter byte, ok bool) {
	switch word {
	case "--cell":
		return cellOption, true
	case "--local":
		return localOption, true
	}
	return 0, false
}

const (
	qsubFlags       = "fhInVXzx"
	qsubFlagsValued = "aAbcCdDeFjJklmMNopPqrRSTtuvwW"
)

// splitOptions splits arguments as getopt does. Options may be combined ("-hz"), with the
// value in the same word ("-joe", "-lnodes=1") or the next. What follows "--" is a
// command. With permute, options may follow operands, as some clients write them.
func splitOptions(args []string, permute bool) (options []OptionValue, operands, command []string, err error) {
	return SplitOptionsFor(args, permute, qsubFlags, qsubFlagsValued, usage)
}

// SplitOptionsFor is splitOptions with the options and the usage message of another
// command.
func SplitOptionsFor(args []string, permute bool,
	flags, valued, usage string) (options []OptionValue, operands, command []string, err error) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			return options, operands, append([]string{}, args[i+1:]...), nil
		}
		if word == "-" || !strings.HasPrefix(word, "-") {
			operands = append(operands, word)
			if !permute {
				return options, append(operands, args[i+1:]...), nil, nil
			}
			continue
		}
		if letter, ok := longOption(word); ok && flags == qsubFlags {
			options = append(options, OptionValue{letter, ""})
			continue
		}
		for k := 1; k < len(word); k++ {
			letter := word[k]
			if strings.IndexByte(flags, letter) >= 0 {
				options = append(options, OptionValue{letter, ""})
				continue
			}
			if strings.IndexByte(valued, letter) < 0 {
				return nil, nil, nil, &RefusalError{"qsub: invalid option -- '" + string(letter) + "'\n" + usage,
					ExitUsage}
			}
			value := word[k+1:]
			if value == "" {
				if i++; i == len(args) {
					return nil, nil, nil, &RefusalError{"qsub: option requires an argument -- '" + string(letter) +
						"'\n" + usage, ExitUsage}
				}
				value = args[i]
			}
			if letter == 'N' {
				value = strings.Trim(strings.TrimPrefix(value, "="), "\"") // -N="x", as PSI/J writes it
			}
			options = append(options, OptionValue{letter, value})
			break
		}
	}
	return options, operands, nil, nil
}
