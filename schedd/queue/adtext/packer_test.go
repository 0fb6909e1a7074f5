package adtext

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func sampleAd(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `[ MyType = "Job"; JobName = "sweep%d"; Script = "#!/bin/sh\n./simulate --seed %d\n"; `, i, i*7919)
	for n := range 40 {
		fmt.Fprintf(&b, `Attribute%d = "value of %d"; `, n, n*n)
	}
	fmt.Fprintf(&b, `Environment = { "HOME=/home/alice","PBS_JOBNAME=sweep%d","SHELL=/bin/bash" } ]`, i)
	return b.String()
}

// TestPackSharesAlikeTexts checks that texts of one user which differ a little need
// little memory, and come back as they were.
func TestPackSharesAlikeTexts(t *testing.T) {
	p := NewPacker()
	for i := range 1000 {
		text := sampleAd(i)
		packed := p.Pack(1000, text)
		if got := packed.String(); got != text {
			t.Fatalf("text %d: got %q, want %q", i, got, text)
		}
		if i > 0 && packed.Size() > 80 {
			t.Fatalf("text %d of %d bytes: its differences have %d bytes", i, len(text), packed.Size())
		}
	}
}

// TestPackAlternatingTexts checks that a user who submits several kinds of jobs in turn
// does not make each a base.
func TestPackAlternatingTexts(t *testing.T) {
	p := NewPacker()
	kinds := make([]string, basesPerUser)
	for k := range kinds {
		kinds[k] = randomText(rand.New(rand.NewPCG(1, uint64(k))), 2000)
	}
	for i := range 100 {
		text := fmt.Sprintf("%s%d%s", kinds[i%len(kinds)][:900], i, kinds[i%len(kinds)][900:])
		packed := p.Pack(7, text)
		if packed.String() != text || i >= len(kinds) && packed.Size() > 20 {
			t.Fatalf("text %d: %d bytes of its own, and equal: %v", i, packed.Size(), packed.String() == text)
		}
	}
	if n := len(p.bases[7]); n != len(kinds) {
		t.Fatalf("got %d bases, want %d", n, len(kinds))
	}
}

func randomText(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

// TestPackRandomTexts checks that texts come back that are made of pieces of each other.
// That includes texts of bases that are not compared any more.
func TestPackRandomTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := NewPacker()
	var texts []string
	var packed []Packed
	for i := range 3000 {
		text := randomText(r, r.IntN(300))
		for range r.IntN(4) {
			if i > 0 {
				from := texts[r.IntN(i)]
				first := r.IntN(len(from) + 1)
				text += from[first : first+r.IntN(len(from)-first+1)]
			}
		}
		texts, packed = append(texts, text), append(packed, p.Pack(uint32(r.IntN(3)), text))
	}
	for i := range texts {
		if got := packed[i].String(); got != texts[i] {
			t.Fatalf("text %d: got %q, want %q", i, got, texts[i])
		}
	}
}

func FuzzPack(f *testing.F) {
	f.Add(sampleAd(1), sampleAd(2))
	f.Add(strings.Repeat("a", 300), strings.Repeat("a", 299)+"b")
	f.Fuzz(func(t *testing.T, first, second string) {
		p := NewPacker()
		for _, text := range []string{first, second, first + second, second + first} {
			if got := p.Pack(1, text).String(); got != text {
				t.Fatalf("got %q, want %q", got, text)
			}
		}
	})
}

func BenchmarkPack(b *testing.B) {
	p := NewPacker()
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = sampleAd(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Pack(1, texts[i%len(texts)])
	}
}

func BenchmarkUnpack(b *testing.B) {
	p := NewPacker()
	p.Pack(1, sampleAd(1))
	packed := p.Pack(1, sampleAd(2))
	b.ReportAllocs()
	for b.Loop() {
		_ = packed.String()
	}
}
