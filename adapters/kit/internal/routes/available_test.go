package routes

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAvailable(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	meminfo := "MemTotal:       25165824 kB\nMemFree:        1 kB\nMemAvailable:   16777216 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no groups": {map[string]string{"proc/meminfo": meminfo}, 16 * gib},
		"second version": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.current": "1\n",
			"sys/fs/cgroup/a/memory.max": "4294967296\n", "sys/fs/cgroup/a/memory.current": "3221225472\n",
			"sys/fs/cgroup/a/memory.stat": "anon 5\nfile 2147483648\nshmem 1073741824\n",
		}, 2 * gib},
		"first version": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:name=systemd:/\n4:memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4294967296\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1073741824\n",
		}, 3 * gib},
		"of another namespace": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/../../x\n",
		}, 16 * gib},
		"all is used": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "4096\n", "sys/fs/cgroup/memory.current": "8192\n",
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for path, text := range c.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := available(root); got != c.want {
				t.Errorf("%d bytes are available, want %d", got, c.want)
			}
		})
	}
	if free := available("/"); free < 1<<20 || free > 1<<46 {
		t.Errorf("%d bytes are available here", free)
	}
}

// TestRoomForPromotions promotes arrays of several sizes, of which few takes much, alone and with others of the heap, until there is no memory left.
func TestRoomForPromotions(t *testing.T) {
	t.Parallel()
	for _, sizes := range [][]int64{{100 << 10}, {3 << 20}, {60 << 20}, {100 << 20}, {100 << 10, 60 << 20}, {100 << 20, 60 << 20}} {
		for _, several := range []bool{false, true} {
			left, asked, n := int64(1<<30), 0, 0
			r := room{left: func() int64 { asked++; return left }}
			for ; r.take(sizes[n%len(sizes)], several && n%2 == 0); n++ {
				left -= sizes[n%len(sizes)]
				if several && n%2 == 0 {
					left -= largeCopy
				}
			}
			if left < 0 || left > 3*largeCopy+slices.Max(sizes) || asked == 0 || asked > n+1 {
				t.Errorf("%d arrays of %d bytes, with others: %t, leave %d, asked %d times", n, sizes, several, left, asked)
			}
			if left = 1 << 30; !r.take(sizes[0], several) {
				t.Errorf("%d bytes: there is memory again", sizes)
			}
		}
	}
}
