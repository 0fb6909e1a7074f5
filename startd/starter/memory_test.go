package starter

import "testing"

func TestAnonymous(t *testing.T) {
	for _, test := range []struct {
		line        string
		start, size uintptr
	}{
		{"c000000000-c000400000 rw-p 00000000 00:00 0 ", 0xc000000000, 0x400000},
		{"7f02eb51c000-7f02eb5fc000 rw-p 00000000 00:00 0", 0x7f02eb51c000, 0xe0000},
		{"c000400000-c004000000 ---p 00000000 00:00 0 ", 0, 0},
		{"00579000-0057e000 rw-p 00179000 fe:00 12 /usr/bin/roost-starter", 0, 0},
		{"7ffd6a5d2000-7ffd6a5f3000 rw-p 00000000 00:00 0                          [stack]", 0x7ffd6a5d2000, 0x21000},
		{"c000000000-c000400000 rw-p 00000000 00:00 0                              [anon: Go: heap]",
			0xc000000000, 0x400000},
		{"7f02eb51c000-7f02eb5fc000 rw-s 00000000 00:00 0", 0, 0},
		{"", 0, 0},
	} {
		if start, size := anonymousRange([]byte(test.line)); start != test.start && test.size > 0 || size != test.size {
			t.Errorf("%q: got %x, %x, want %x, %x", test.line, start, size, test.start, test.size)
		}
	}
}
