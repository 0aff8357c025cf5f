"""What each exercise of p4-learning should show when its solution runs: what its README says, with its own scripts."""

import re
import subprocess
import time
from pathlib import Path

from net import Net, need, ping


class Lesson(Net):
    """A network of an exercise, with the controllers that would run in other terminals."""

    def __init__(self, folder, env, script):
        self.env, self.controllers = env, []
        super().__init__(folder, env, 150, ["python", script])

    def cli(self, line, patience=60):
        # p4-utils colours what it says.
        return re.sub(r"\x1b\[\d*m", "", super().cli(line, patience))

    def start_controller(self, words, log="controller.log", ready=None, patience=40):
        """Starts a controller; its process, whose input is a pipe."""
        with open(Path(self.folder) / log, "w") as out:
            process = subprocess.Popen(words.split(), cwd=self.folder, stdin=subprocess.PIPE, stdout=out, stderr=out,
                                       env=self.env)
        self.controllers.append(process)
        if ready:
            self.wait_for(log, ready, patience)
        return process

    def tell(self, process, line):
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()

    def close(self):
        for process in self.controllers:
            process.kill()
            process.wait()
        super().close()


def sent(interface):
    """The frames that a switch has sent by an interface."""
    return int(Path(f"/sys/class/net/{interface}/statistics/tx_packets").read_text())


def sent_meanwhile(interfaces, action):
    before = [sent(interface) for interface in interfaces]
    action()
    time.sleep(0.5)
    return [sent(interface) - old for interface, old in zip(interfaces, before)]


def all_reach_all(net, tries=2):
    """The first packets may meet a switch that is still making its code."""
    for _ in range(tries):
        said = net.cli("pingall", 240)
        if re.search(r"Results: 0% dropped", said):
            return
    need(False, said)


def reaches(net, source, target, count=2):
    """All pings come back, after a first one."""
    ping(net, source, target, 1)
    return ping(net, source, target, count)[0] == count


def carries(net, client, server):
    """TCP flows; a frame has all that p4-utils lets it have. Mininet knows hosts by name."""
    net.background(server, "iperf -s -p 5050", "iperf.log", "listening")
    said = net.cli(f"{client} iperf -c {server} -p 5050 -t 3 -y C", 40)
    net.cli(f"{server} kill %iperf")
    rates = re.findall(r"^\d{14}.*,(\d+)\s*$", said, re.M)
    need(rates and int(rates[-1]) > 100_000, f"no TCP between {client} and {server}: {said}")


def reflector(net):
    # It sends one packet for each line of its input.
    said = net.cli("h1 (sleep 2; echo; sleep 2) | timeout 8 python send_receive.py", 30)
    need(re.search(r"Info: 00:01:02:03:04:05 -> (..:){5}..", said), said)


def repeater(net):
    net.background("h2", "python -u receive.py", "h2.log", "sniffing on")
    net.cli('h1 python send.py 10.0.0.2 "Hello H2"', 30)
    # Of the message it shows what the version of scapy makes of it.
    net.wait_for("h2.log", r"src: 10\.0\.0\.1\n  dst: 10\.0\.0\.2\n.*msg: \S")
    need(reaches(net, "h1", "h2"), "h1 does not reach h2")
    carries(net, "h1", "h2")


def controlled_repeater(net):
    need(net.start_controller("python controller.py").wait(40) == 0, net.read("controller.log"))
    repeater(net)


def forwarding(net):
    all_reach_all(net)


def controlled_forwarding(net):
    need(net.start_controller("python controller.py").wait(40) == 0, net.read("controller.log"))
    all_reach_all(net)


def flooding(back, controller=None):
    """Who sends to all gets the frame back, or not."""
    def check(net):
        if controller:
            need(net.start_controller(f"python {controller}").wait(40) == 0, net.read("controller.log"))
        all_reach_all(net)
        ports = [f"s1-eth{number}" for number in (1, 2, 3, 4)]
        copies = sent_meanwhile(ports, lambda: net.cli("h1 (sleep 1; echo; sleep 1) | timeout 6 python send_broadcast.py", 30))
        need(copies == [int(back), 1, 1, 1], f"copies of a frame to all, by port: {copies}")
    return check


def learning(kind, switches=()):
    """Stations are learnt of: 4 at one switch, 6 with four of them, whose controllers the network starts itself."""
    def check(net):
        if switches:
            time.sleep(8)
            return all_reach_all(net, 3)
        net.start_controller(f"python -u l2_learning_controller.py s1 {kind}")
        time.sleep(6)
        all_reach_all(net)
        known = set(re.findall(r"mac: (\w{12}) ingress_port: \d", net.read("controller.log")))
        need(len(known) == 4, f"{len(known)} stations are learnt: {net.read('controller.log')[-2000:]}")
        # What is learnt of is not sent to all any more.
        copies = sent_meanwhile(["s1-eth3", "s1-eth4"], lambda: ping(net, "h1", "h2", 5))
        need(max(copies) <= 2, f"what h1 and h2 say reaches h3 and h4: {copies}")
    return check


def mpls(controller):
    def check(net):
        if controller:
            need(net.start_controller("python controller.py").wait(60) == 0, net.read("controller.log"))
        all_reach_all(net)
    return check


def rsvp(net):
    controller = net.start_controller("python -u rsvp_controller.py", ready="rsvp-menu")
    need(ping(net, "h1", "h5")[0] == 0, "h1 reaches h5 without a reservation")
    for line in ("h1 h5 1000 5 2", "h5 h1 1000 1 2", "h1 h6 1000 5 2", "h2 h5 1000 5 1"):
        net.tell(controller, f"add_reservation {line}")
        time.sleep(2)
    need(reaches(net, "h1", "h5", 4), f"h1 does not reach h5: {net.read('controller.log')[-2000:]}")
    net.tell(controller, "print_reservations")
    net.wait_for("controller.log", r"0 h1->h5.*1 h5->h1.*2 h1->h6.*3 h2->h5")
    # One of more importance takes the place of one of less.
    net.tell(controller, "add_reservation h2 h6 1000 10 3")
    net.wait_for("controller.log", r"Successful reservation\(h2->h6\)")
    need("Deleting allocation h2->h5" in net.read("controller.log"), net.read("controller.log")[-2000:])
    need(reaches(net, "h1", "h5", 4), "h1 does not reach h5 by another path")
    net.tell(controller, "del_reservation h1 h5")
    net.wait_for("controller.log", r"Deleted/Expired Reservation\(h1->h5\)")
    need(ping(net, "h1", "h5")[0] == 0, "h1 reaches h5 after its reservation")


PATHS = [f"s1-eth{number}" for number in (2, 3, 4, 5)]


def spreads(net, target):
    """One flow takes one path, a thousand take all of four."""
    one = sent_meanwhile(PATHS, lambda: ping(net, "h1", target, 10))
    need(sum(count >= 8 for count in one) == 1, f"ten pings by path: {one}")
    carries(net, "h1", "h2")
    many = sent_meanwhile(PATHS, lambda: net.cli(f"h1 python send.py {target} 400", 120))
    # 100 each; less than 60 comes once in a million times.
    need(min(many) > 60 and 400 <= sum(many) < 420, f"400 flows by path: {many}")


def ecmp(net):
    all_reach_all(net)
    spreads(net, "10.0.6.2")


def routing(target):
    def check(net):
        need(net.start_controller("python routing-controller.py").wait(90) == 0, net.read("controller.log")[-2000:])
        all_reach_all(net)
        spreads(net, target)
    return check


def flowlets(net):
    all_reach_all(net)
    carries(net, "h1", "h2")
    slow = sent_meanwhile(PATHS, lambda: net.cli("h1 python send.py 10.0.6.2 60 0.2", 120))
    need(min(slow) > 3 and sum(slow) >= 60, f"60 flowlets by path: {slow}")
    fast = sent_meanwhile(PATHS, lambda: net.cli("h1 python send.py 10.0.6.2 200 0.0001", 120))
    need(max(fast) > 120, f"packets of few flowlets by path: {fast}")


def heavy_hitters(net):
    all_reach_all(net)
    net.background("h2", "python -u receive.py", "h2.log")
    time.sleep(3)
    said = net.cli("h1 python send.py 10.0.2.2 1300 | tail -1", 180)
    need("Sent 1300 packets" in said, said)
    time.sleep(3)
    got = [int(number) for number in re.findall(r"10\.0\.2\.2.*total: (\d+)", net.read("h2.log"))]
    need(got and 990 <= max(got) <= 1000, f"{max(got, default=0)} of 1300 packets of a flow come, 1000 may")


def sketch(net):
    first = net.start_controller("python cm-sketch-controller.py --option set_hashes")
    need(first.wait(40) == 0, net.read("controller.log"))
    net.cli("h1 python send.py --n-pkt 1000 --n-hh 2 --n-sfw 0 --p-hh 1", 120)
    time.sleep(2)
    second = net.start_controller("python cm-sketch-controller.py --eps 0.1 --n 1000 --mod 28 --option decode", "decode.log")
    need(second.wait(60) == 0, net.read("decode.log"))
    counts = [(int(real), int(read)) for real, read in re.findall(r"by the cms: (\d+)/(\d+)", net.read("decode.log"))]
    need(len(counts) == 2 and "Not hold for 0.0%" in net.read("decode.log"), net.read("decode.log"))
    # It never counts too little.
    need(all(real <= read for real, read in counts) and sum(real for real, _ in counts) == 1000, f"sent and counted: {counts}")


def traceroute(net):
    need(net.start_controller("python routing-controller.py").wait(90) == 0, net.read("controller.log")[-2000:])
    all_reach_all(net)
    seconds = set()
    for port in range(6000, 6008):
        said = net.cli(f"h1 traceroute -n -w 1 -q 1 -m 8 -T --sport={port} --port=80 10.6.2.2", 60)
        hops = re.findall(r"^ *\d+ +([\d.]+) ", said, re.M)
        need(len(hops) == 4 and hops[-1] == "10.6.2.2", said)
        seconds.add(hops[1])
    need(len(seconds) > 1, f"all flows take one path: {seconds}")


def load_balance(net):
    all_reach_all(net)
    for number in (1, 2, 3, 4):
        net.cli(f"h{number + 4} iperf3 -s -D --logfile /dev/null")
    time.sleep(1)
    for number in (1, 2, 3, 4):
        net.cli(f"h{number} iperf3 -M 9000 -c h{number + 4} -t 100 > flow{number}.log 2>&1 &")
    # Four flows of 10 Mbit/s for four paths of 10 Mbit/s; flows of a full path are moved until each has one.
    paths = [f"s1-eth{number}" for number in (5, 6, 7, 8)]
    rates, end = [], time.monotonic() + 90
    while time.monotonic() < end:
        rates = rates_of(paths, 5)
        if sum(rate > 4e6 for rate in rates) >= 3 and sum(rates) > 25e6:
            return
    need(False, f"bits a second by path: {rates}")


def rates_of(interfaces, seconds):
    read = lambda: [int(Path(f"/sys/class/net/{name}/statistics/tx_bytes").read_text()) for name in interfaces]  # noqa: E731
    before = read()
    time.sleep(seconds)
    return [8 * (new - old) / seconds for new, old in zip(read(), before)]


def packet_loss(net):
    net.start_controller("python -u packet-loss-controller.py --option run")
    time.sleep(8)
    need(reaches(net, "h1", "h2"), f"h1 does not reach h2: {net.read('controller.log')[-1000:]}")
    net.background("h2", "ping -i 0.01 10.0.1.1", "ping.log")
    time.sleep(3)
    # The program clones without fields of its metadata (`@field_list` stands before the structure, where p4c does not look
    # for it), so the controller is told of batch 0 each time, which half of the time is the one that was gathered.
    for _ in range(8):
        said = net.cli("h1 python send.py --n-pkt 100 --n-drops 5 --fail-hops 1", 60)
        dropped = {int(ident) for ident in re.findall(r"^\(.*?, (\d+), 1\)\s*$", said, re.M)}
        need(len(dropped) == 5, said)
        time.sleep(5)
        found = {int(number) for number in re.findall(r"^\(.*?, (\d+)\)\s*$", net.read("controller.log"), re.M)}
        if dropped <= found:
            return
    need(False, f"dropped {dropped}; {net.read('controller.log')[-1200:]}")


def reroute(net):
    controller = net.start_controller("python -u controller.py", ready="link-menu", patience=90)
    all_reach_all(net)
    net.background("h2", "ping -i 0.2 -c 60 10.4.4.2", "ping.log")
    time.sleep(3)
    net.tell(controller, "fail s1 s2")
    time.sleep(4)
    net.tell(controller, "notify")
    net.wait_for("ping.log", r"\d+ received", 40)
    got = int(re.search(r"(\d+) received", net.read("ping.log"))[1])
    # The link goes down before the controller has told the switches, one after the other.
    need(got >= 50, f"{got} of 60 pings come back while a link fails: {net.read('controller.log')[-1500:]}")
    all_reach_all(net)


class Exercise:
    """A folder of p4-learning, the script of a network in it, and what its network should do."""

    def __init__(self, folder, network, check):
        self.path, self.network, self.check = folder, network, check
        self.name = folder + ("" if network == "network.py" else f" {network[len('network_'):-len('.py')]}")

    def folder(self, exercises):
        return exercises / self.path


EXERCISES = [
    Exercise("01-Reflector", "network.py", reflector),
    Exercise("02-Repeater/thrift", "network.py", repeater),
    Exercise("02-Repeater/thrift", "network_table.py", repeater),
    Exercise("02-Repeater/p4runtime", "network.py", controlled_repeater),
    Exercise("03-L2_Basic_forwarding/thrift", "network.py", forwarding),
    Exercise("03-L2_Basic_forwarding/p4runtime", "network.py", controlled_forwarding),
    Exercise("03-L2_Flooding/thrift", "network-all-ports.py", flooding(True)),
    Exercise("03-L2_Flooding/thrift", "network-other-ports.py", flooding(False)),
    Exercise("03-L2_Flooding/p4runtime", "network-all-ports.py", flooding(True, "controller-all-ports.py")),
    Exercise("03-L2_Flooding/p4runtime", "network-other-ports.py", flooding(False, "controller-other-ports.py")),
    *(Exercise(f"04-L2_Learning/{api}", f"network_{kind}.py", learning(kind)) for api in ("thrift", "p4runtime") for kind in ("cpu", "digest")),
    *(Exercise(f"04-L2_Learning/{api}", f"network_{kind}_multi.py", learning(kind, ("s1", "s2", "s3", "s4")))
      for api in ("thrift", "p4runtime") for kind in ("cpu", "digest")),
    *(Exercise(f"04-MPLS/{api}/{kind}", "network.py", mpls(api == "p4runtime")) for api in ("thrift", "p4runtime") for kind in ("mpls_basics", "mpls_stacked")),
    Exercise("04-RSVP/thrift", "network.py", rsvp),
    Exercise("04-RSVP/p4runtime", "network.py", rsvp),
    Exercise("05-ECMP", "network.py", ecmp),
    Exercise("05-Flowlet_Switching", "network.py", flowlets),
    Exercise("06-Heavy_Hitter_Detector", "network.py", heavy_hitters),
    Exercise("07-Count-Min-Sketch", "network.py", sketch),
    Exercise("08-Simple_Routing/thrift", "network.py", routing("10.6.2.2")),
    Exercise("08-Simple_Routing/p4runtime", "network.py", routing("10.6.2.2")),
    Exercise("09-Traceroutable", "network.py", traceroute),
    Exercise("10-Congestion_Aware_Load_Balancing", "network_medium.py", load_balance),
    Exercise("11-Packet-Loss-Detection", "network.py", packet_loss),
    Exercise("12-Fast-Reroute", "network.py", reroute),
]
