-- commitResult: compares the token with the fence and, unless the fence is above it, writes the value, its time to
-- live and the fence, all in one step. Everything is checked before the first write.
--
-- KEYS[1]  the result, a string; a value that was there without a fence is taken over
-- KEYS[2]  the fence, a hash in the same slot
--
-- ARGV[1]  token in canonical text: 5, 20 and 10 digits with dots between
-- ARGV[2]  job, 1 to 64 bytes
-- ARGV[3]  value
-- ARGV[4]  digest of the value: SHA-256 as 64 hexadecimal digits in lower case
-- ARGV[5]  time to live in whole milliseconds, 1 to 9007199254740991; empty: the result does not expire
-- ARGV[6]  mode: once (one result per token) or update (the same token may write another value)
-- ARGV[7]  holder, for people who look: at most 64 bytes, may be empty
--
-- Replies: flat arrays of bulk strings; the first item is the code, the fields follow in this order
--   committed revision      value and fence are written; the revision counts the writes under this token, from 1
--   duplicate revision      this value was committed under this token before; nothing was changed
--   conflict                another value was committed under this token before, in mode once; nothing was changed
--   stale token             the fence is above the token, at the one given here; the refusal is counted in the fence
--   foreign job             the key belongs to the job given here; nothing was changed
--   wrongtype type          the result key holds another type than a string; nothing was changed
--   corrupt field           the fence is not one that these scripts wrote, see the field; nothing was changed
--   badtoken                ARGV[1] is not a canonical token; nothing was changed
--   badargument argument    another argument is not as described above; nothing was changed
--   noperm command          the user may not run a command that is needed here; nothing was changed

-- begin of the part that is the same in every script (a test holds it so)
local TOKEN = '^' .. ('[0-9]'):rep(5) .. '%.' .. ('[0-9]'):rep(20) .. '%.' .. ('[0-9]'):rep(10) .. '$'
local FIELDS = {
  'token', 'job', 'state', 'holder',
  'committedToken', 'digest', 'revision', 'committedAt', 'committedHolder',
  'stale', 'lastStaleToken', 'lastStaleAt',
}

-- Tokens are compared as text and never become numbers: Lua would round them. Their parts have an upper end:
-- the generation is a signed 64-bit number, and the counter behind the sequence repeats at 2147483647.
local function isToken(text)
  return text and #text == 37 and text:find(TOKEN) ~= nil
    and text:sub(7, 26) <= '09223372036854775807' and text:sub(28) <= '2147483646'
end

-- At most 15 digits: a count that Lua adds to exactly.
local function isCount(text)
  return text and #text <= 15 and (text == '0' or text:find('^[1-9][0-9]*$') ~= nil)
end

local function isDigest(text)
  return text and #text == 64 and not text:find('[^0-9a-f]')
end

local function isJob(text)
  return text and #text >= 1 and #text <= 64
end

local function faultIn(fence)
  if not isToken(fence.token) then return 'token' end
  if not isJob(fence.job) then return 'job' end
  if fence.state ~= 'open' and fence.state ~= 'committed' then return 'state' end
  if fence.stale and not isCount(fence.stale) then return 'stale' end
  if fence.lastStaleToken and not isToken(fence.lastStaleToken) then return 'lastStaleToken' end
  if fence.lastStaleAt and not isCount(fence.lastStaleAt) then return 'lastStaleAt' end
  if fence.state == 'committed' and fence.committedToken ~= fence.token then return 'committedToken' end
  if not fence.committedToken then return nil end
  if not isToken(fence.committedToken) or fence.token < fence.committedToken then return 'committedToken' end
  if not isDigest(fence.digest) then return 'digest' end
  if not isCount(fence.revision) then return 'revision' end
  if not isCount(fence.committedAt) then return 'committedAt' end
  return nil
end

-- The fence, or nil when none is stored; and the name of the first field that is not as it must be.
local function readFence()
  local kind = redis.call('TYPE', KEYS[2]).ok
  if kind == 'none' then return nil, nil end
  if kind ~= 'hash' then return nil, 'type ' .. kind end
  local fence = {}
  for index, text in ipairs(redis.call('HMGET', KEYS[2], unpack(FIELDS))) do
    fence[FIELDS[index]] = text
  end
  return fence, faultIn(fence)
end

-- Milliseconds since 1970 as decimal text, put together as text so that no digit is lost.
local function serverMs()
  local time = redis.call('TIME')
  return time[1] .. ('000000' .. time[2]):sub(-6, -4)
end
-- end of the part that is the same in every script

local token, job, value, digest = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local ttlMs, mode, holder = ARGV[5], ARGV[6], ARGV[7]

local function isTtl(text)
  if text == '' then return true end
  return text:find('^[1-9][0-9]*$') ~= nil and (#text < 16 or (#text == 16 and text <= '9007199254740991'))
end

if not isToken(token) then return {'badtoken'} end
if not isJob(job) then return {'badargument', 'job'} end
if not isDigest(digest) then return {'badargument', 'digest'} end
if not ttlMs or not isTtl(ttlMs) then return {'badargument', 'ttl'} end
if mode ~= 'once' and mode ~= 'update' then return {'badargument', 'mode'} end
if not holder or #holder > 64 then return {'badargument', 'holder'} end

local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then return {'wrongtype', kind} end
local fence, fault = readFence()
if fault then return {'corrupt', fault} end

if redis.acl_check_cmd then
  if not redis.acl_check_cmd('SET', KEYS[1], value) then return {'noperm', 'SET'} end
  if not redis.acl_check_cmd('HSET', KEYS[2], 'token', token) then return {'noperm', 'HSET'} end
  if not redis.acl_check_cmd('HINCRBY', KEYS[2], 'stale', '1') then return {'noperm', 'HINCRBY'} end
  if not redis.acl_check_cmd('PERSIST', KEYS[2]) then return {'noperm', 'PERSIST'} end
end

if fence and fence.job ~= job then return {'foreign', fence.job} end
if fence and token < fence.token then
  -- A server that takes no writes must still tell of the refusal; it is not counted there.
  if type(redis.pcall('HINCRBY', KEYS[2], 'stale', '1')) == 'number' then
    redis.call('HSET', KEYS[2], 'lastStaleToken', token, 'lastStaleAt', serverMs())
  end
  return {'stale', fence.token}
end

local revision = '1'
if fence and fence.token == token and fence.state == 'committed' then
  if fence.digest == digest then return {'duplicate', fence.revision} end
  if mode == 'once' then return {'conflict'} end
  revision = ('%.0f'):format(fence.revision + 1)
end

-- Redis before 7.0 cannot be asked what the user may do; there a SET that does nothing (NX on a key that exists, XX
-- on one that does not) and a needed PERSIST come first, and fail early. HSET is the next write and needs none.
local expires = redis.call('PTTL', KEYS[2]) >= 0
if not redis.acl_check_cmd then
  redis.call('SET', KEYS[1], '', kind == 'string' and 'NX' or 'XX')
  if expires then redis.call('PERSIST', KEYS[2]) end
end
redis.call('HSET', KEYS[2],
  'token', token, 'job', job, 'state', 'committed', 'holder', holder,
  'committedToken', token, 'digest', digest, 'revision', revision,
  'committedAt', serverMs(), 'committedHolder', holder)
if expires then redis.call('PERSIST', KEYS[2]) end
if ttlMs == '' then
  redis.call('SET', KEYS[1], value)
else
  redis.call('SET', KEYS[1], value, 'PX', ttlMs)
end
return {'committed', revision}
