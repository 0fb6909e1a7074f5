package roost

import "testing"

func TestParseByteRate(t *testing.T) {
	tests := []struct {
		text string
		want ByteRate // below 0: an error
	}{
		{"50MB/s", 50 << 20}, {"1.5GiB/s", 3 << 29}, {" 512k/s ", 512 << 10}, {"100/s", 100},
		{"100Mbit/s", 12_500_000}, {"1 Gbps", 125_000_000}, {"8bit/s", 1}, {"1bit/s", 1}, {"10kbits/s", 1250},
		{"50MB", -1}, {"50", -1}, {"-1MB/s", -1}, {"-1Mbit/s", -1}, {"MB/s", -1}, {"xMbit/s", -1}, {"NaNbit/s", -1},
		{"9000PB/s", -1}, {"1e30bit/s", -1}, {"", -1}, {"2mw/s", -1},
	}
	for _, c := range tests {
		got, err := ParseByteRate(c.text)
		if c.want < 0 && err == nil || c.want >= 0 && (err != nil || got != c.want) {
			t.Errorf("%q: got %d, %v, want %d", c.text, got, err, c.want)
		}
	}
}

// TestIORatesInResources: the rates are two more dimensions of a vector. Machines that
// state none are no obstacle to requests without them.
func TestIORatesInResources(t *testing.T) {
	machine := Resources{CPU: 8000, Memory: GiB, IO: IORates{Disk: 100 << 20, Network: 10 << 20}}
	task := Resources{CPU: 1000, Memory: MiB, IO: IORates{Disk: 30 << 20}}
	if n := task.TimesIn(machine); n != 3 {
		t.Errorf("it fits %d times, want 3", n)
	}
	left := machine.Sub(task).Sub(task).Sub(task)
	if task.FitsIn(left) || left.IO.Disk != 10<<20 || left.Add(task).IO != (IORates{40 << 20, 10 << 20}) {
		t.Errorf("three leave %v", left)
	}
	task.IO = IORates{}
	if !task.FitsIn(left) || !task.FitsIn(Resources{CPU: 1000, Memory: MiB, IO: IORates{Disk: -1}}) {
		t.Error("a task that asks for no I/O does not fit")
	}
	task.IO.Network = 1
	if task.FitsIn(Resources{CPU: 1000, Memory: MiB}) {
		t.Error("a request for network fits on a machine that states none")
	}
}
