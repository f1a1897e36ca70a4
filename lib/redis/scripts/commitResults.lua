-- commitResults: commits several results of one claim in one step: all of them, or none. Each is a value, a deletion or
-- a guard: a key whose fence must not stand in the way either, and where nothing is changed. Everything is checked
-- before the first write.
--
-- KEYS[1]  of three keys for each result, in a cluster all in one slot: the result, a string; it need not exist
-- KEYS[2]  the fence, a hash
-- KEYS[3]  the floor of the slot, a string; it need not exist. KEYS[4] is the next result, and so on
--
-- ARGV[1]  token in canonical text: 5, 20 and 10 digits with dots between
-- ARGV[2]  job, 1 to 64 bytes
-- ARGV[3]  holder, for people who look: at most 64 bytes, may be empty
-- ARGV[4]  mode: once (one result per token) or update (the same token may write another value)
-- ARGV[5]  order: 16 digits that rise with each write under one token, and stay when it is sent again; may be empty
-- ARGV[6]  retention in whole milliseconds, or empty: the fence of a result that expires or is deleted is kept so much
--          longer, then expires too
-- ARGV[7]  policy: enforce or empty, or observe, which refuses nothing and counts what it would refuse
-- ARGV[8]  touch: 1 makes a reply that changes nothing write the fences as they are, so that WAIT and WAITAOF wait
--   and six for each result, in the order of the keys:
-- ARGV[9]  value
-- ARGV[10]  digest of the value: SHA-256 as 64 hexadecimal digits in lower case; empty: the result is deleted; or guard
-- ARGV[11]  time to live in whole milliseconds, 1 to 9007199254740991; empty: the result does not expire
-- ARGV[12]  encoding of the value, such as gzip: at most 64 bytes, may be empty
-- ARGV[13]  raised: 1 when the fence has been raised to the token before, so that it must be there; else empty
-- ARGV[14]  alive: the floor since which ZooKeeper has confirmed that the claim is held; else empty
--
-- Replies: flat arrays of bulk strings; the first item is the code, the fields follow in this order. The number says
-- which result it is about, from 1.
--   committed revision…           all is written; revisions count the writes under this token; 0: deletion or guard
--   duplicate revision…           all was committed under this token before; nothing was changed
--   observed number code field    all is written, though this one would have been refused with this code and field
--   conflict number               another value was committed under this token before; nothing was changed
--   superseded number             a write under this token that came later is there already; nothing was changed
--   stale number token            the fence is above the token, at the one given here; counted in that fence
--   floor number token            there is no fence, and the floor here is not below the token; nothing was changed
--   lost number token             the fence was raised before, and is gone or has come down to the token given here;
--                                 nothing was changed: raise the fences of all claims that are held, and commit again
--   foreign number job            the key belongs to the job given here; nothing was changed
--   wrongtype number type         the result key holds another type than a string; nothing was changed
--   corrupt number field          the fence is not one that these scripts wrote, see the field; nothing was changed
--   badtoken                      ARGV[1] is not a canonical token; nothing was changed
--   badargument argument          another argument is not as described above; nothing was changed
--   noperm command                the user may not run a command that is needed here; nothing was changed

-- begin of the part that is the same in every script (a test holds it so)
local find, sub = string.find, string.sub

-- Tokens are compared as text and never become numbers: Lua would round them. Their parts have an upper end:
-- the generation is a signed 64-bit number, and the counter behind the sequence repeats at 2147483647.
local function isToken(text)
  return text and #text == 37 and sub(text, 6, 6) == '.' and sub(text, 27, 27) == '.'
    and find(text, '^%d+%.%d+%.%d+$') ~= nil
    and sub(text, 7, 26) <= '09223372036854775807' and sub(text, 28) <= '2147483646'
end

-- At most 15 digits: a count that Lua adds to exactly.
local function isCount(text)
  return text and #text <= 15 and (text == '0' or find(text, '^[1-9]%d*$') ~= nil)
end

local function isDigest(text)
  return text and #text == 64 and find(text, '^[0-9a-f]+$') ~= nil
end

local function isOrder(text)
  return #text == 16 and find(text, '^%d+$') ~= nil
end

local function isJob(text)
  return text and #text >= 1 and #text <= 64
end

-- The name of the first field that is not as it must be. A result is described by digest, revision and committedAt;
-- committedToken and committedHolder say whose it is once a newer claim has raised the fence above it.
local function faultIn(fence)
  if not isToken(fence.token) then return 'token' end
  if not isJob(fence.job) then return 'job' end
  if fence.order and not isOrder(fence.order) then return 'order' end
  if fence.stale and not isCount(fence.stale) then return 'stale' end
  if fence.observed and not isCount(fence.observed) then return 'observed' end
  if fence.lastStaleToken and not isToken(fence.lastStaleToken) then return 'lastStaleToken' end
  if fence.lastStaleAt and not isCount(fence.lastStaleAt) then return 'lastStaleAt' end
  if fence.state == 'open' then
    if not fence.committedToken then return nil end
    if not isToken(fence.committedToken) or fence.token < fence.committedToken then return 'committedToken' end
  elseif fence.state ~= 'committed' then
    return 'state'
  end
  if not isDigest(fence.digest) then return 'digest' end
  if not isCount(fence.revision) then return 'revision' end
  if not isCount(fence.committedAt) then return 'committedAt' end
  return nil
end

-- The fence, or nil when none is stored; and the name of the first field that is not as it must be.
local function readFence(key)
  local fence, stored = {}, redis.pcall('HGETALL', key)
  if stored.err then
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'hash' then return nil, 'type ' .. kind end
    stored = redis.call('HGETALL', key) -- fails again, with the reason
  end
  if #stored == 0 then return nil, nil end
  for index = 1, #stored, 2 do fence[stored[index]] = stored[index + 1] end
  return fence, faultIn(fence)
end

-- Milliseconds since 1970 as decimal text, put together as text so that no digit is lost.
local function serverMs()
  local time = redis.call('TIME')
  return time[1] .. ('000000' .. time[2]):sub(-6, -4)
end
-- end of the part that is the same in every script

-- begin of the part that is the same in every script that writes (a test holds it so)
local NO_ORDER = ('0'):rep(16)

-- Read before anything is written: a user that may not run TIME is refused here.
local NOW_MS = serverMs()

local function isMs(text)
  return find(text, '^[1-9]%d*$') ~= nil and (#text < 16 or (#text == 16 and text <= '9007199254740991'))
end

-- The first argument that is not as it must be; nil when all are.
local function faultInClaim(claim)
  if not isJob(claim.job) then return 'job' end
  if not claim.holder or #claim.holder > 64 then return 'holder' end
  if claim.order ~= '' and not isOrder(claim.order) then return 'order' end
  if claim.raised ~= '' and claim.raised ~= '1' then return 'raised' end
  if claim.alive ~= '' and not isToken(claim.alive) then return 'alive' end
  if claim.retentionMs ~= '' and not isMs(claim.retentionMs) then return 'retention' end
  if claim.policy ~= '' and claim.policy ~= 'enforce' and claim.policy ~= 'observe' then return 'policy' end
  if claim.touch ~= '' and claim.touch ~= '1' then return 'touch' end
  return nil
end

-- What stands in the way of a write, as the reply that says so; nil when nothing does. Where no fence is stored, the
-- floor of the slot stands for the fences that were removed: only a claim that has been found alive since the floor
-- was set to what it is now may begin below it.
local function refusalOf(claim, fence, floorKey)
  if fence then
    if fence.job ~= claim.job then return {'foreign', fence.job} end
    if claim.token < fence.token then return {'stale', fence.token} end
    if claim.raised == '1' and fence.token < claim.token then return {'lost', fence.token} end
    return nil
  end
  local floor = redis.call('GET', floorKey)
  if floor and not isToken(floor) then return {'corrupt', 'floor'} end
  if floor and claim.token <= floor then
    if claim.alive == floor then return nil end
    return {'floor', floor}
  end
  if claim.raised == '1' then return {'lost', ''} end
  return nil
end

-- Counts a write that was refused or let through. A server that takes no writes must still tell of it.
local function count(claim, field, fence, key)
  if not fence or type(redis.pcall('HINCRBY', key, field, '1')) ~= 'number' then return end
  redis.pcall('HSET', key, 'lastStaleToken', claim.token, 'lastStaleAt', NOW_MS)
end

-- Redis before 7.0 cannot be asked what the user may do.
local function mayNot(...)
  return redis.acl_check_cmd and not redis.acl_check_cmd(...)
end
-- end of the part that is the same in every script that writes

local token, job, mode, order = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local entries = {}

local function claimOf(raised, alive)
  return {
    token = token, job = job, holder = ARGV[3], order = order, raised = raised, alive = alive,
    retentionMs = ARGV[6], policy = ARGV[7], touch = ARGV[8],
  }
end

if not isToken(token) then return {'badtoken'} end
if mode ~= 'once' and mode ~= 'update' then return {'badargument', 'mode'} end
if #KEYS == 0 or #KEYS % 3 ~= 0 then return {'badargument', 'keys'} end
if #ARGV ~= 8 + 2 * #KEYS then return {'badargument', 'count'} end
for number = 1, #KEYS / 3 do
  local key, argument = 3 * number - 2, 6 * number + 3
  local entry = {
    key = KEYS[key], fenceKey = KEYS[key + 1], floorKey = KEYS[key + 2],
    value = ARGV[argument], digest = ARGV[argument + 1], ttlMs = ARGV[argument + 2],
    encoding = ARGV[argument + 3], claim = claimOf(ARGV[argument + 4], ARGV[argument + 5]), revision = '1',
  }
  entry.isGuard = entry.digest == 'guard'
  if entry.digest ~= '' and not entry.isGuard and not isDigest(entry.digest) then return {'badargument', 'digest'} end
  if entry.ttlMs ~= '' and not isMs(entry.ttlMs) then return {'badargument', 'ttl'} end
  if #entry.encoding > 64 then return {'badargument', 'encoding'} end
  local bad = faultInClaim(entry.claim)
  if bad then return {'badargument', bad} end
  entries[number] = entry
end

-- Whether this entry is done already, and else what stands in its way.
local function judge(entry)
  local fence = entry.fence
  local refusal = refusalOf(entry.claim, fence, entry.floorKey)
  if entry.isGuard then return not refusal, refusal end
  if refusal or not fence or fence.token ~= token then return false, refusal end
  entry.isOwn = true
  local isBehind = order ~= '' and fence.order and order < fence.order
  local isAgain = order ~= '' and order == fence.order
  local isCommitted = fence.state == 'committed'
  if entry.digest == '' then
    if isAgain then return true, nil end
  elseif isCommitted and fence.digest == entry.digest then
    local isThere = entry.kind == 'string' and (mode == 'once' or order == '' or isBehind)
    if isAgain or isThere then
      entry.revision = fence.revision
      return true, nil
    end
  elseif isCommitted and mode == 'once' then
    return false, {'conflict'}
  end
  if isBehind then return false, {'superseded'} end
  if isCommitted then entry.revision = ('%.0f'):format(fence.revision + 1) end
  return false, nil
end

local function numbered(number, reply)
  return {reply[1], tostring(number), unpack(reply, 2)}
end

local observed
local left = 0
for number, entry in ipairs(entries) do
  entry.kind = redis.call('TYPE', entry.key).ok
  if entry.kind ~= 'string' and entry.kind ~= 'none' then
    return {'wrongtype', tostring(number), entry.kind}
  end
  local fence, fault = readFence(entry.fenceKey)
  if fault then return {'corrupt', tostring(number), fault} end
  entry.fence = fence
  local isDone, refusal = judge(entry)
  if refusal then
    local code = refusal[1]
    if entry.claim.policy ~= 'observe' or code == 'lost' or code == 'corrupt' then
      if code == 'stale' then count(entry.claim, 'stale', fence, entry.fenceKey) end
      return numbered(number, refusal)
    end
    entry.isObserved = true
    observed = observed or {tostring(number), unpack(refusal)}
  end
  entry.isDone = isDone
  if not isDone then left = left + 1 end
end

local revisions = {}
for number, entry in ipairs(entries) do
  revisions[number] = (entry.digest == '' or entry.isGuard) and '0' or entry.revision
end
if left == 0 then
  if ARGV[8] == '1' then
    for _, entry in ipairs(entries) do
      if not entry.isGuard then redis.call('HSET', entry.fenceKey, 'token', token) end
    end
  end
  return {'duplicate', unpack(revisions)}
end

-- What follows the first write must not fail: the reply that names what the user may not do there. A server that cannot
-- be asked is given commands that change nothing, or nothing that matters.
local function missingFor(entry)
  local fence, key, fenceKey = entry.fence, entry.key, entry.fenceKey
  entry.expires = fence and redis.call('PTTL', fenceKey) >= 0
  if ARGV[6] ~= '' and (entry.digest == '' or entry.ttlMs ~= '') then
    entry.keepMs = ('%.0f'):format(ARGV[6] + (entry.digest ~= '' and entry.ttlMs or 0))
  end
  if mayNot('HSET', fenceKey, 'token', token) then return {'noperm', 'HSET'} end
  if mayNot('SET', key, '') then return {'noperm', 'SET'} end
  if entry.digest == '' then
    if mayNot('UNLINK', key) then return {'noperm', 'UNLINK'} end
    if mayNot('HDEL', fenceKey, 'digest') then return {'noperm', 'HDEL'} end
  end
  if entry.keepMs and mayNot('PEXPIRE', fenceKey, '1') then return {'noperm', 'PEXPIRE'} end
  if entry.expires and mayNot('PERSIST', fenceKey) then return {'noperm', 'PERSIST'} end
  if not redis.acl_check_cmd then
    if fence then redis.call('HSET', fenceKey, 'token', fence.token) end
    redis.call('SET', key, '', entry.kind == 'string' and 'NX' or 'XX')
    if entry.digest == '' then redis.call('HDEL', fenceKey, 'none') end
    if entry.expires then redis.call('PERSIST', fenceKey) end
    if fence and entry.keepMs then redis.call('PEXPIRE', fenceKey, entry.keepMs) end
  end
  return nil
end

for _, entry in ipairs(entries) do
  local missing = not entry.isGuard and missingFor(entry)
  if missing then return missing end
end

local function putFence(entry)
  local fence = entry.fence
  local changed = {
    'token', token, 'job', job, 'holder', ARGV[3],
    'order', order ~= '' and order or (entry.isOwn and fence.order or NO_ORDER),
  }
  local function change(field, text)
    changed[#changed + 1] = field
    changed[#changed + 1] = text
  end
  change('state', entry.digest == '' and 'open' or 'committed')
  if entry.digest ~= '' then
    change('digest', entry.digest)
    change('revision', entry.revision)
    change('committedAt', NOW_MS)
    if entry.encoding ~= '' or (fence and fence.encoding) then change('encoding', entry.encoding) end
  end
  redis.call('HSET', entry.fenceKey, unpack(changed))
  if entry.digest == '' then
    redis.call('HDEL', entry.fenceKey,
      'digest', 'revision', 'committedAt', 'committedToken', 'committedHolder', 'encoding')
  end
  if entry.keepMs then
    redis.call('PEXPIRE', entry.fenceKey, entry.keepMs)
  elseif entry.expires then
    redis.call('PERSIST', entry.fenceKey)
  end
end

local function putValue(entry)
  if entry.digest == '' then
    redis.call('UNLINK', entry.key)
  elseif entry.ttlMs == '' then
    redis.call('SET', entry.key, entry.value)
  else
    redis.call('SET', entry.key, entry.value, 'PX', entry.ttlMs)
  end
end

for _, entry in ipairs(entries) do
  if entry.isObserved then
    count(entry.claim, 'observed', entry.fence, entry.fenceKey)
  elseif not entry.isDone then
    putFence(entry)
  end
  if not entry.isDone and not entry.isGuard then putValue(entry) end
end
if observed then return {'observed', unpack(observed)} end
return {'committed', unpack(revisions)}
