// Package pack measures how well the negotiator's matcher fills machines. It drives
// [match.Matcher] alone: there is no time and no network, tasks come or are all there,
// and stay. It is pure: randomness comes in, and the same goes out of the same.
//
//   - [ReadNodes] and [ReadPods] read the openb trace of a GPU cluster; [NewCell] makes a
//     [CellWorkload] of them. A cell may come from elsewhere, too.
//   - [FillCell] lets tasks come one by one in random order until more has been asked for
//     than there is, and says how much was given away and how much of the
//     rest nobody can use (Weng et al., Beware of Fragmentation, USENIX ATC 2023, §6).
//   - [Compact] takes machines away at random until the work no longer fits, and says how
//     few hold it (Verma et al., Large-scale cluster management at
//     Google with Borg, EuroSys 2015, §5.1).
//   - [Variants] are ways of running a cell that cost machines: production apart, users
//     apart, sizes in powers of two, nothing reclaimed (ibid., §5.2 to §5.5).
package packing
