package pbs

import "strings"

// option is one option with its value.
type option struct {
	letter byte
	value  string
}

const (
	flags  = "fhIVXzx"
	valued = "aAcCdDejJklmMNopPqrRSTtuvwW"
)

// split reads options as getopt does: combined ("-hz"), with the value in the same word ("-joe", "-lnodes=1") or the next.
// What stands behind "--" is a command. Options may follow operands, as clients write them.
func split(args []string, permute bool) (options []option, operands, command []string, err error) {
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
		for k := 1; k < len(word); k++ {
			letter := word[k]
			if strings.IndexByte(flags, letter) >= 0 {
				options = append(options, option{letter, ""})
				continue
			}
			if strings.IndexByte(valued, letter) < 0 {
				return nil, nil, nil, &Error{"qsub: invalid option -- '" + string(letter) + "'\n" + usage, exitUsage}
			}
			value := word[k+1:]
			if value == "" {
				if i++; i == len(args) {
					return nil, nil, nil, &Error{"qsub: option requires an argument -- '" + string(letter) + "'\n" + usage, exitUsage}
				}
				value = args[i]
			}
			if letter == 'N' {
				value = strings.Trim(strings.TrimPrefix(value, "="), "\"") // -N="x", as PSI/J writes it
			}
			options = append(options, option{letter, value})
			break
		}
	}
	return options, operands, nil, nil
}

// splitWords splits a directive as a shell would, without expanding anything: quotes of both kinds, and backslashes.
func splitWords(s string) (words []string, ok bool) {
	var word strings.Builder
	quote, open := byte(0), false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, open = c, true
		case c == '\\' && i+1 < len(s):
			i++
			word.WriteByte(s[i])
			open = true
		case c == ' ' || c == '\t':
			if open {
				words = append(words, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words, quote == 0
}

// list splits at commas outside of quotes; the quotes themselves go.
func list(s string) []string {
	var out []string
	var part strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && c == ',':
			out = append(out, part.String())
			part.Reset()
		case c == '\\' && i+1 < len(s) && s[i+1] == ',':
			i++
			part.WriteByte(',')
		default:
			part.WriteByte(c)
		}
	}
	return append(out, part.String())
}
