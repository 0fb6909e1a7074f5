package idle

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/kernfs"
)

// HasConsole reports whether the machine has a console. A device with keys, buttons or a
// touch screen is one, and so is a seat with a display. Many servers have one in their
// management board; that is the safe side for the owner.
func HasConsole() bool { return hasConsole("/sys/class/input", "/run/systemd/seats") }

// Key bits of a keyboard, a mouse and a touch screen (linux/input-event-codes.h). A power
// button has none of them.
const (
	keyEnter = 28
	keySpace = 57
	btnLeft  = 0x110
	btnTouch = 0x14a
)

func hasConsole(input, seats string) bool {
	devices, _ := filepath.Glob(filepath.Join(input, "event*", "device", "capabilities", "key"))
	for _, file := range devices {
		text, _ := kernfs.ReadFile(file)
		for _, key := range []int{keyEnter, keySpace, btnLeft, btnTouch} {
			if hasBit(string(text), key) {
				return true
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(seats, "*"))
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.Contains("\n"+string(text), "\nCAN_GRAPHICAL=1\n") {
			return true
		}
	}
	return false
}

// hasBit tests a bit in a bitmap as sysfs prints it: words of 64 bits in hexadecimal, the
// highest first.
func hasBit(text string, bit int) bool {
	words := strings.Fields(text)
	i := len(words) - 1 - bit/64
	if i < 0 {
		return false
	}
	n, _ := strconv.ParseUint(words[i], 16, 64)
	return n>>(bit%64)&1 == 1
}
