-- AFDX (ARINC 664 part 7) for Wireshark and tshark: virtual link, network and sequence number of each frame, and what breaks the contract.
--
--     tshark -X lua_script:contrib/wireshark/afdx.lua -o afdx.bag:2000 -r FILE -Y 'afdx.expert.bag || afdx.expert.number'
--     wireshark -X lua_script:contrib/wireshark/afdx.lua FILE
--
-- A frame is AFDX if its destination begins with the constant part of virtual links. Its number is the last byte before the frame check
-- sequence. Per virtual link, network and capture interface:
--
--   afdx.expert.bag     it came less than BAG - jitter after the frame before it (preference `bag`, or `vls` for some)
--   afdx.expert.number  its number is neither 0 nor one or two after the number before it
--   afdx.expert.length  it is shorter than 64 bytes with FCS, or longer than Lmax
--   afdx.expert.interface  its source is no interface of network A or B
--
-- Times are those of the capture, which most devices take at the end of a frame or later: `jitter` has to have room for that.

local afdx = Proto("afdx", "Avionics Full-Duplex Switched Ethernet")

local networks = { [0x20] = "A", [0x40] = "B" }

local f = {
    vl = ProtoField.uint16("afdx.vl", "Virtual link", base.DEC),
    es = ProtoField.uint16("afdx.es", "End system", base.HEX),
    network = ProtoField.string("afdx.network", "Network"),
    number = ProtoField.uint8("afdx.number", "Sequence number", base.DEC),
    length = ProtoField.uint16("afdx.length", "Length with FCS", base.DEC),
    gap = ProtoField.double("afdx.gap", "Time since the frame before of this virtual link (us)"),
}
afdx.fields = { f.vl, f.es, f.network, f.number, f.length, f.gap }

local function warning(name, text)
    return ProtoExpert.new("afdx.expert." .. name, text, expert.group.SEQUENCE, expert.severity.WARN)
end
local e = {
    bag = warning("bag", "Earlier than the bandwidth allocation gap allows"),
    number = warning("number", "Not a sequence number that may follow"),
    length = warning("length", "A length that its virtual link does not have"),
    interface = warning("interface", "The source is no interface of network A or B"),
}
afdx.experts = { e.bag, e.number, e.length, e.interface }

afdx.prefs.prefix = Pref.string("Constant part of destinations", "03000000", "The first 32 bits of the address of a virtual link, in hexadecimal")
afdx.prefs.fcs = Pref.bool("Frames have their check sequence", false, "The last four bytes of each frame are its FCS")
afdx.prefs.bag = Pref.uint("BAG (us)", 0, "Bandwidth allocation gap of all virtual links; 0: not checked")
afdx.prefs.jitter = Pref.uint("Jitter (us)", 500, "How much earlier than BAG after the one before a frame may come")
afdx.prefs.vls = Pref.string("BAG and Lmax by virtual link", "", "VL=BAG in us/Lmax in bytes with FCS, with commas: 1=2000/200,7=128000/1518")

-- Of the preferences, as tables.
local prefix, contracts = 0x03000000, {}

local function read_preferences()
    prefix = tonumber(afdx.prefs.prefix, 16) or 0x03000000
    contracts = {}
    for vl, bag, lmax in string.gmatch(afdx.prefs.vls, "(%d+)=(%d+)/(%d+)") do
        contracts[tonumber(vl)] = { bag = tonumber(bag), lmax = tonumber(lmax) }
    end
end

-- What was seen of each virtual link: `last[key]`, in the order of the first pass; `seen[frame number]` keeps what it said of a frame, as
-- Wireshark dissects a frame again whenever somebody looks at it. One capture has at most so many frames here, the others are not checked.
local MAX_FRAMES = 5000000
local last, seen, count = {}, {}, 0

function afdx.init()
    last, seen, count = {}, {}, 0
    read_preferences()
end

function afdx.prefs_changed()
    read_preferences()
end

local interface_id = Field.new("frame.interface_id")

-- One or two after the number before; after 255 comes 1. 0 is a reset.
local function may_follow(before, number)
    if number == 0 then
        return true
    end
    if before == 0 then
        return number <= 2
    end
    return (number - before) % 255 == 1 or (number - before) % 255 == 2
end

local function check(pinfo, vl, network, number)
    local known = seen[pinfo.number]
    if known then
        return known
    end
    local at = interface_id()
    local key = string.format("%d/%s/%s", vl, network, at and tostring(at.value) or "")
    local before, found = last[key], {}
    -- Since the first frame: seconds since 1970 as a floating point number would be off by a tenth of a microsecond.
    local now = { time = pinfo.rel_ts, number = number }
    if before then
        found.gap = (now.time - before.time) * 1e6
        found.wrong_number = not may_follow(before.number, number)
    end
    last[key] = now
    if count < MAX_FRAMES then
        seen[pinfo.number], count = found, count + 1
    end
    return found
end

function afdx.dissector(buffer, pinfo, tree)
    local length = buffer:reported_length_remaining()
    local captured = buffer:len()
    local fcs = afdx.prefs.fcs and 4 or 0
    if captured < 14 or buffer(0, 4):uint() ~= prefix then
        return
    end
    local vl, es, interface = buffer(4, 2):uint(), buffer(9, 2):uint(), buffer(11, 1):uint()
    local network = networks[interface]
    local whole = length - fcs + 4
    local contract = contracts[vl] or { bag = afdx.prefs.bag, lmax = 1518 }

    local branch = tree:add(afdx, buffer(0, 14))
    local function complain(expert, text)
        branch:add_proto_expert_info(expert, text)
    end
    branch:add(f.vl, buffer(4, 2))
    branch:add(f.es, buffer(9, 2))
    branch:add(f.network, buffer(11, 1), network or "?")
    branch:add(f.length, whole):set_generated()
    local text = string.format("VL %d", vl)
    if network then
        text = text .. ", network " .. network
    else
        complain(e.interface, string.format("The source ends with %02x", interface))
    end
    if whole < 64 or whole > contract.lmax then
        complain(e.length, string.format("%d bytes with FCS, allowed are 64 to %d", whole, contract.lmax))
    end
    if captured == length and captured > 14 + fcs then
        local where = buffer(captured - fcs - 1, 1)
        local number = where:uint()
        branch:add(f.number, where)
        text = text .. string.format(", number %d", number)
        local found = check(pinfo, vl, network or interface, number)
        if found.gap then
            branch:add(f.gap, found.gap):set_generated()
            if contract.bag > 0 and found.gap < contract.bag - afdx.prefs.jitter - 0.0005 then
                complain(e.bag, string.format("%.3f us after the frame before, BAG is %d us", found.gap, contract.bag))
            end
        end
        if found.wrong_number then
            complain(e.number, string.format("%d does not follow", number))
        end
    end
    branch:append_text(": " .. text)
    pinfo.cols.info:prepend(text .. "; ")
end

register_postdissector(afdx)
